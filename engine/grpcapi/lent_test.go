package grpcapi_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	pb "tuner/engine/api/inferencepb"
	"tuner/engine/budget"
	"tuner/engine/enginetest"
	"tuner/engine/grpcapi"
	"tuner/engine/grpcapi/compression"
	"tuner/engine/grpcapi/lent"
	"tuner/engine/sharedmemory"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// A stream sends window bytes before its client must read.
const window = 64 << 10

// echo serves a model that returns two tensors, and returns its backend too.
func echo(t *testing.T, o grpcapi.Options) (*enginetest.Backend, *grpc.ClientConn) {
	t.Helper()
	tensor := func(name string) modelconfig.Tensor {
		return modelconfig.Tensor{Name: name, DataType: configpb.DataType_TYPE_UINT8, Dims: []int64{-1, -1}}
	}
	backend := &enginetest.Backend{IO: modelconfig.ModelIO{
		Inputs:  []modelconfig.Tensor{tensor("X0"), tensor("X1")},
		Outputs: []modelconfig.Tensor{tensor("Y0"), tensor("Y1")},
	}}
	_, conn := serve(t, enginetest.Start(t, enginetest.Options{Backend: backend}), o, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	return backend, conn
}

// pair is a request with two tensors of random bytes.
func pair(random *rand.ChaCha8, sizes [2]int, outputs ...string) *pb.ModelInferRequest {
	r := &pb.ModelInferRequest{ModelName: "fake", Id: "1"}
	for i, size := range sizes {
		data := make([]byte, size)
		_, _ = random.Read(data) // it never fails
		r.Inputs = append(r.Inputs, input(fmt.Sprintf("X%d", i), "UINT8", 1, int64(size)))
		r.RawInputContents = append(r.RawInputContents, data)
	}
	for _, name := range outputs {
		r.Outputs = append(r.Outputs, &pb.ModelInferRequest_InferRequestedOutputTensor{Name: name})
	}
	return r
}

// checkPair compares an answer's tensors with those of its request, in the order of the names.
func checkPair(r *pb.ModelInferRequest, answer *pb.ModelInferResponse) error {
	got := answer.GetRawOutputContents()
	want := r.GetRawInputContents()
	if len(r.GetOutputs()) == 1 { // of the second one
		want = want[1:]
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d outputs, want %d", len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			return fmt.Errorf("output %d of %d bytes is another one", i, len(want[i]))
		}
	}
	return nil
}

// Answers of all sizes are those of their requests while many are on their way at the same time: large
// outputs are written from the model's memory, which is another one's as soon as it is freed.
func TestLargeOutputsLiveUntilTheyAreSent(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]grpcapi.Options{"plain": {}, "gzip": {Compression: compression.Low}} {
		b := budget.New(0)
		o.Memory = b
		backend, conn := echo(t, o)
		c := pb.NewGRPCInferenceServiceClient(conn)
		var clients sync.WaitGroup
		for k := range 4 {
			clients.Go(func() {
				random := rand.NewChaCha8([32]byte{byte(k)})
				for _, sizes := range [][2]int{{lent.Least, lent.Least}, {lent.Least - 1, 4 * window}, {4 * window, 3}, {8 * window, 0}, {5, 6}, {lent.Least + 1, 8 * window}} {
					for _, outputs := range [][]string{nil, {"Y1"}} {
						r := pair(random, sizes, outputs...)
						answer, err := c.ModelInfer(t.Context(), r)
						if err == nil {
							err = checkPair(r, answer)
						}
						if err != nil {
							t.Errorf("%s: %v: %v", name, sizes, err)
						}
					}
				}
			})
			clients.Go(func() {
				if err := streamPairs(t, c, rand.NewChaCha8([32]byte{0, byte(k)})); err != nil {
					t.Errorf("%s: stream: %v", name, err)
				}
			})
		}
		clients.Wait()
		until(t, b, name, nothing)
		awaitFreed(t, backend, name)
	}
}

// streamPairs sends all its requests before it reads an answer.
func streamPairs(t *testing.T, c pb.GRPCInferenceServiceClient, random *rand.ChaCha8) error {
	stream, err := c.ModelStreamInfer(t.Context())
	if err != nil {
		return err
	}
	var sent []*pb.ModelInferRequest
	for _, sizes := range [][2]int{{4 * window, lent.Least}, {7, 8}, {lent.Least, 4 * window}, {100, lent.Least}} {
		r := pair(random, sizes)
		sent = append(sent, r)
		if err := stream.Send(r); err != nil {
			return err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for _, r := range sent {
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := errors.Join(checkPair(r, answer.GetInferResponse())); err != nil {
			return err
		}
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("at the end: %w", err)
	}
	return nil
}

// A large output is the request's also where another one goes to a region of shared memory: the answer without
// that one's data does not free the memory that is still to be written. Both are given back once.
func TestLargeOutputBesideARegion(t *testing.T) {
	t.Parallel()
	const size = 4 * window
	for name, o := range map[string]grpcapi.Options{"plain": {}, "gzip": {Compression: compression.Low}} {
		b := budget.New(0)
		o.Memory, o.Regions = b, sharedmemory.New()
		t.Cleanup(o.Regions.Close)
		backend, conn := echo(t, o)
		c := pb.NewGRPCInferenceServiceClient(conn)
		key, file := enginetest.SharedFile(t, make([]byte, size))
		if _, err := c.SystemSharedMemoryRegister(t.Context(), &pb.SystemSharedMemoryRegisterRequest{Name: "r", Key: key, ByteSize: size}); err != nil {
			t.Fatal(err)
		}
		stream, err := c.ModelStreamInfer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		random := rand.NewChaCha8([32]byte{})
		for k := range 4 {
			r := pair(random, [2]int{size, size}, "Y0", "Y1")
			r.Outputs[0].Parameters = at(0, size)
			var answer *pb.ModelInferResponse
			if k%2 == 0 {
				answer, err = c.ModelInfer(t.Context(), r)
			} else if err = stream.Send(r); err == nil {
				var streamed *pb.ModelStreamInferResponse
				streamed, err = stream.Recv()
				answer = streamed.GetInferResponse()
			}
			if err != nil {
				t.Fatalf("%s: request %d: %v", name, k, err)
			}
			placed := make([]byte, size)
			if _, err := file.ReadAt(placed, 0); err != nil || !bytes.Equal(placed, r.GetRawInputContents()[0]) {
				t.Errorf("%s: request %d: the region has another output, %v", name, k, err)
			}
			if got := answer.GetRawOutputContents(); len(got) != 2 || len(got[0]) > 0 || !bytes.Equal(got[1], r.GetRawInputContents()[1]) {
				t.Errorf("%s: request %d: the answer has other outputs", name, k)
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: at the end: %v", name, err)
		}
		until(t, b, name, nothing)
		awaitFreed(t, backend, name)
	}
}

// awaitFreed waits until the outputs of all executions are freed. gRPC drops those of a connection that
// ends.
func awaitFreed(t *testing.T, b *enginetest.Backend, what string) {
	t.Helper()
	for end := time.Now().Add(patience); b.Unfreed() > 0; pause() {
		runtime.GC()
		if time.Now().After(end) {
			t.Fatalf("%s: the outputs of %d executions are not freed", what, b.Unfreed())
		}
	}
}

// A large output stays where it is while its client does not read, and is charged once. It is freed when
// the client leaves.
func TestUnreadOutputIsFreedWithItsClient(t *testing.T) {
	t.Parallel()
	const size = 16 * window
	b := budget.New(100 * size)
	backend, conn := echo(t, grpcapi.Options{Memory: b})
	r := pair(rand.NewChaCha8([32]byte{}), [2]int{size, size})
	sent := append(hello(), call(1, "ModelInfer")...)
	text := message(t, r)
	for flags := byte(0); len(text) > 0; {
		n := min(len(text), 1<<14)
		if n == len(text) {
			flags = 1 // END_STREAM
		}
		sent = append(sent, frame(frameData, flags, 1, text[:n])...)
		text = text[n:]
	}
	reader := raw(t, conn.Target(), sent)
	for end := time.Now().Add(patience); backend.Unfreed() == 0; pause() {
		if time.Now().After(end) {
			t.Fatal("the request is not executed")
		}
	}
	// The request is gone by then. Each output would be held twice, and in a buffer of twice its size, if
	// it were copied.
	until(t, b, "the outputs", func(used int64) bool { return used > 0 && used < 2*size+size/2 })
	if n := backend.Unfreed(); n != 1 {
		t.Errorf("the outputs of %d executions wait, want those of one", n)
	}
	_ = reader.Close()
	until(t, b, "after the client has gone", nothing)
	awaitFreed(t, backend, "after the client has gone")
}
