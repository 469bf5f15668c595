package grpcapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcgzip "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "tuner/engine/api/inferencepb"
	"tuner/engine/budget"
	"tuner/engine/enginetest"
	"tuner/engine/grpcapi"
	"tuner/engine/grpcapi/compression"
	"tuner/internal/alloctest"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// patience bounds the wait for events that should happen at once.
const patience = 30 * time.Second

// large serves a model that makes size bytes from any number of bytes, by a front end with a
// budget.
func large(t *testing.T, size int64, b *budget.Budget) *grpc.ClientConn {
	t.Helper()
	return largeWith(t, size, grpcapi.Options{Memory: b})
}

func largeWith(t *testing.T, size int64, o grpcapi.Options) *grpc.ClientConn {
	t.Helper()
	_, conn := serve(t, enginetest.Start(t, enginetest.Options{Backend: &enginetest.Backend{Noise: o.Compression != compression.None, IO: modelconfig.ModelIO{
		Inputs:  []modelconfig.Tensor{{Name: "X", DataType: configpb.DataType_TYPE_UINT8, Dims: []int64{-1, -1}}},
		Outputs: []modelconfig.Tensor{{Name: "Y", DataType: configpb.DataType_TYPE_UINT8, Dims: []int64{-1, size}}},
	}}}), o)
	return conn
}

func ask(size int64) *pb.ModelInferRequest {
	return &pb.ModelInferRequest{ModelName: "fake", Inputs: []*pb.ModelInferRequest_InferInputTensor{input("X", "UINT8", 1, size)}, RawInputContents: [][]byte{make([]byte, size)}}
}

// message returns a gRPC message without compression.
func message(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)
}

// raw is a connection that reads nothing.
func raw(t *testing.T, target string, sent []byte) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // some tests close it themselves
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(sent); err != nil {
		t.Fatal(err)
	}
	return conn
}

// pause is the time between two looks. A loop without one takes a core from what it waits for.
func pause() { time.Sleep(time.Millisecond) }

// until waits until the charged bytes meet a condition.
func until(t *testing.T, b *budget.Budget, what string, is func(used int64) bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(b.Used()); pause() {
		if time.Now().After(end) {
			t.Fatalf("%s: %d bytes are charged", what, b.Used())
		}
	}
}

func nothing(used int64) bool { return used == 0 }

// A client that reads none of its answers, 200 MB in all, takes only its part of the memory. Health
// checks and other clients are answered over their own connections.
func TestUnreadAnswersStopNobody(t *testing.T) {
	t.Parallel()
	calls := hello()
	for i := range uint32(200) {
		calls = append(append(calls, call(2*i+1, "ModelInfer")...), frame(frameData, 1, 2*i+1, message(t, ask(1)))...)
	}
	stream := append(hello(), call(1, "ModelStreamInfer")...)
	for range 200 {
		stream = append(stream, frame(frameData, 0, 1, message(t, ask(1)))...)
	}
	for name, sent := range map[string][]byte{"calls": calls, "a stream": stream} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unread(t, 1<<20, compression.None, sent)
		})
	}
}

// Compressed answers count as others do. On each stream only one waits, since gRPC makes no further
// answer on a stream where 64 KiB wait.
func TestUnreadCompressedAnswersStopNobody(t *testing.T) {
	t.Parallel()
	for method, flags := range map[string]byte{"ModelInfer": 1, "ModelStreamInfer": 0} {
		sent := hello()
		for i := range uint32(80) {
			sent = append(sent, call(2*i+1, method, "grpc-accept-encoding", "gzip")...)
			sent = append(sent, frame(frameData, flags, 2*i+1, message(t, ask(1)))...)
		}
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			unread(t, 128<<10, compression.Low, sent) // gzip takes its time
		})
	}
}

// unread checks a client that sends something and reads none of its answers of size bytes. It takes
// a part of the memory, and others are answered.
func unread(t *testing.T, size int64, compression compression.Level, sent []byte) {
	b := budget.New(100 * size)
	conn := largeWith(t, size, grpcapi.Options{Memory: b, Compression: compression})
	reader := raw(t, conn.Target(), sent)
	until(t, b, "the client that does not read", func(used int64) bool { return used > 20*size })
	c := pb.NewGRPCInferenceServiceClient(conn)
	for range 10 {
		answered(t, c, size)
	}
	// Half is taken once. Then the memory is free again that the answers needed beside their own. How
	// much that was depends on how many answers were made at the same time.
	if used := b.Used(); used == 0 || used > 60*size {
		t.Errorf("%d bytes are charged of %d", used, b.Max())
	}
	_ = reader.Close()
	until(t, b, "after the client has gone", nothing)
}

// answered checks that a client is answered: a health check, and an inference with an output of size bytes.
func answered(t *testing.T, c pb.GRPCInferenceServiceClient, size int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := c.ServerLive(ctx, &pb.ServerLiveRequest{}); err != nil {
		t.Fatalf("live: %v", err)
	}
	if answer, err := c.ModelInfer(ctx, ask(2*size)); err != nil || int64(len(answer.GetRawOutputContents()[0])) != size {
		t.Fatalf("infer: %v", err)
	}
}

// When a connection has used its part of the memory, its calls are refused at once. They are served
// again when the answers have been read.
func TestCallsBeyondTheMemoryAreRefused(t *testing.T) {
	t.Parallel()
	b := budget.New(8 << 20)
	conn := large(t, 5<<20, b) // half of 8 MiB may be taken
	_, err := pb.NewGRPCInferenceServiceClient(conn).ModelInfer(t.Context(), ask(1))
	if want := "requests and answers take more than the 8388608 bytes of memory that they may, try again later"; status.Code(err) != codes.ResourceExhausted || status.Convert(err).Message() != want {
		t.Errorf("%v, want %s", err, want)
	}
	stream, err := pb.NewGRPCInferenceServiceClient(conn).ModelStreamInfer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stream.Send(ask(1)), stream.CloseSend()); err != nil {
		t.Fatal(err)
	}
	if answer, err := stream.Recv(); err != nil || answer.GetErrorMessage() == "" {
		t.Errorf("stream: %v, %v", answer, err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("stream: %v", err)
	}
	until(t, b, "afterwards", nothing)
}

// The bytes of answered requests are given back while the connection, and its stream, stay open.
// Not parallel: compressors charge the front end that was made last.
func TestAnsweredRequestsAreGivenBack(t *testing.T) {
	for name, compression := range map[string]compression.Level{"plain": compression.None, "gzip": compression.Low} {
		t.Run(name, func(t *testing.T) { givenBack(t, compression) })
	}
}

func givenBack(t *testing.T, compression compression.Level) {
	tensor := []modelconfig.Tensor{{Name: "X", DataType: configpb.DataType_TYPE_UINT8, Dims: []int64{-1, -1}}}
	b := budget.New(256 << 20)
	_, conn := serve(t, enginetest.Start(t, enginetest.Options{Backend: &enginetest.Backend{IO: modelconfig.ModelIO{Inputs: tensor, Outputs: tensor}}}),
		grpcapi.Options{Memory: b, Compression: compression}, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	c := pb.NewGRPCInferenceServiceClient(conn)
	stream, err := c.ModelStreamInfer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	compressed, err := c.ModelStreamInfer(t.Context(), grpc.UseCompressor(grpcgzip.Name))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{1, 10 << 10, 100 << 10, 2 << 20} {
		r := ask(size)
		for range 3 {
			if _, err := c.ModelInfer(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			for _, s := range []grpc.BidiStreamingClient[pb.ModelInferRequest, pb.ModelStreamInferResponse]{stream, compressed} {
				if err := s.Send(r); err != nil {
					t.Fatal(err)
				}
				if answer, err := s.Recv(); err != nil || answer.GetErrorMessage() != "" {
					t.Fatal(answer, err)
				}
			}
		}
		// The two open streams with their headers, and five bytes of a message beside its text.
		until(t, b, "streams that wait", func(used int64) bool { return used < 36<<10 })
	}
	if err := errors.Join(stream.CloseSend(), compressed.CloseSend()); err != nil {
		t.Fatal(err)
	}
	until(t, b, "afterwards", nothing)
}

// Incomplete messages end the connection that has most of them, and no other.
func TestIncompleteMessagesEndTheLargest(t *testing.T) {
	t.Parallel()
	b := budget.New(16 << 20)
	conn := large(t, 1, b)
	parts := func(streams uint32) []byte { // a MiB less the rest of the window, of messages of 4 MiB
		sent := hello()
		for i := range streams {
			sent = append(sent, call(2*i+1, "ModelInfer")...)
			head := []byte{0, 0, 0x40, 0, 0}
			for range 60 {
				sent = append(sent, frame(frameData, 0, 2*i+1, append(head, make([]byte, 16<<10-len(head))...))...)
				head = nil
			}
		}
		return sent
	}
	small := raw(t, conn.Target(), parts(2))
	until(t, b, "the small one", func(used int64) bool { return used > 2*900<<10 })
	largest, err := net.Dial("tcp", conn.Target())
	if err != nil {
		t.Fatal(err)
	}
	defer largest.Close()
	if err := largest.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	// with the 2 of the other and its own once more: 30 of 18
	_, writeErr := largest.Write(parts(14))
	_, readErr := io.Copy(io.Discard, largest)
	var network net.Error
	if errors.As(readErr, &network) && network.Timeout() {
		t.Errorf("it was not ended: %v, %v", writeErr, readErr)
	}
	until(t, b, "the small one again", func(used int64) bool { return used < 3<<20 })
	if _, err := pb.NewGRPCInferenceServiceClient(conn).ModelInfer(t.Context(), ask(1)); err != nil {
		t.Errorf("another client: %v", err)
	}
	if used := b.Used(); used < 2*900<<10 {
		t.Errorf("%d bytes are charged: the small one was ended", used)
	}
	_ = small.Close()
	until(t, b, "afterwards", nothing)
}

// A short message that becomes a long one is decompressed only as far as there is room.
// Not parallel: it measures the allocations of the process, and the compressors belong to the
// process.
func TestDecompressionIsBounded(t *testing.T) {
	const zeros = 32 << 20
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := io.CopyN(z, repeated{}, zeros); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	b := budget.New(12 << 20)
	conn := large(t, 1, b)
	sent := append(hello(), call(1, "ModelInfer", "grpc-encoding", "gzip")...)
	sent = append(sent, frame(frameData, 0, 1, binary.BigEndian.AppendUint32([]byte{1}, uint32(bomb.Len())))...)
	for bomb.Len() > 0 {
		sent = append(sent, frame(frameData, 0, 1, bomb.Next(16<<10))...)
	}
	var server net.Conn
	took := alloctest.Bytes(func() {
		server = raw(t, conn.Target(), append(sent, frame(frameData, 1, 1, nil)...))
		// the answer
		awaitFrame(t, server, func(head []byte) bool { return head[3] == frameHeaders })
	})
	if took > 24<<20 {
		t.Errorf("%d bytes of gzip made the process allocate %d bytes", len(sent), took)
	}
	_ = server.Close()
	until(t, b, "afterwards", nothing)
	_, err := pb.NewGRPCInferenceServiceClient(conn).ModelInfer(t.Context(), ask(5<<20), grpc.UseCompressor(grpcgzip.Name))
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message of more than a third of the memory: %v", err)
	}
	until(t, b, "afterwards", nothing)
}

// repeated is an endless source of zeros.
type repeated struct{}

func (repeated) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// Answers that are not inferences are charged too until they have been read.
func TestUnreadDescriptionsAreCharged(t *testing.T) {
	t.Parallel()
	var outputs []modelconfig.Tensor
	for i := range 200 {
		outputs = append(outputs, modelconfig.Tensor{Name: fmt.Sprintf("an output with a long name %d", i), DataType: configpb.DataType_TYPE_UINT8, Dims: []int64{1}})
	}
	b := budget.New(100 << 20)
	e := enginetest.Start(t, enginetest.Options{Backend: &enginetest.Backend{IO: modelconfig.ModelIO{Inputs: outputs[:1], Outputs: outputs}}})
	_, conn := serve(t, e, grpcapi.Options{Memory: b})
	const calls = 100
	sent := hello()
	for i := range uint32(calls) {
		sent = append(append(sent, call(2*i+1, "ModelMetadata")...), frame(frameData, 1, 2*i+1, message(t, &pb.ModelMetadataRequest{Name: "fake"}))...)
	}
	reader := raw(t, conn.Target(), sent)
	// Without the answers, a call takes 16 KiB and its headers. An answer has about 9 kB.
	until(t, b, "unread", func(used int64) bool { return used > calls*24<<10 })
	_ = reader.Close()
	until(t, b, "afterwards", nothing)
}

// The files of a load request are charged once until the load ends, whether they came compressed or not. What does
// not fit is refused, and waits for no load.
// Not parallel: compressors charge the front end that was made last.
func TestLoadRequestsAreCharged(t *testing.T) {
	const size = 6 << 20
	for name, option := range map[string]grpc.CallOption{"plain": grpc.EmptyCallOption{}, "gzip": grpc.UseCompressor(grpcgzip.Name)} {
		t.Run(name, func(t *testing.T) {
			loading, finish := make(chan struct{}), make(chan struct{})
			var once sync.Once
			backend := &enginetest.Backend{FailLoad: func(c *modelconfig.Config) error {
				if c.GetName() == "more" {
					once.Do(func() { close(loading) })
					<-finish
				}
				return nil
			}}
			b := budget.New(24 << 20) // two of 6 MiB would fit, if the calls took nothing else
			_, conn := serve(t, enginetest.Start(t, enginetest.Options{Backend: backend}), grpcapi.Options{Memory: b})
			c := pb.NewGRPCInferenceServiceClient(conn)
			load := func() error {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_, err := c.RepositoryModelLoad(ctx, &pb.RepositoryModelLoadRequest{ModelName: "more", Parameters: map[string]*pb.ModelRepositoryParameter{
					"config":            {ParameterChoice: &pb.ModelRepositoryParameter_StringParam{StringParam: "{}"}},
					"file:1/model.onnx": {ParameterChoice: &pb.ModelRepositoryParameter_BytesParam{BytesParam: make([]byte, size)}},
				}}, option)
				return err
			}
			first := make(chan error, 1)
			go func() { first <- load() }()
			<-loading
			if used := b.Used(); used < size || used > size+64<<10 {
				t.Errorf("%d bytes are charged for a file of %d", used, size)
			}
			if err := load(); status.Code(err) != codes.ResourceExhausted {
				t.Errorf("a second load: %v", err)
			}
			close(finish)
			if err := <-first; err != nil {
				t.Errorf("the first load: %v", err)
			}
			until(t, b, "afterwards", nothing)
		})
	}
}
