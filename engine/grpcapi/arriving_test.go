package grpcapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"unsafe"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	pb "tuner/engine/api/inferencepb"
	"tuner/engine/budget"
	"tuner/engine/buffers"
)

// pieces cuts bytes at random places.
func pieces(random *rand.Rand, b []byte) (out [][]byte) {
	for len(b) > 0 {
		n := 1 + random.IntN(len(b))
		out, b = append(out, b[:n]), b[n:]
	}
	return out
}

// grpcMessage returns a message of gRPC with a length.
func grpcMessage(length int) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(length)), make([]byte, length)...)
}

// However it is cut into frames and reads, a message is over with its last byte, or with the last byte of
// its stream. It is over at once where it cannot be waited for.
func TestMessagesAreFollowedToTheirEnd(t *testing.T) {
	t.Parallel()
	const most = 1000
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		length := random.IntN(2 * most)
		text := grpcMessage(length)
		ends := random.IntN(2) == 0 // the stream ends with the last frame
		if ends && random.IntN(2) == 0 {
			text = text[:random.IntN(len(text))+1] // before the message does
		}
		frames := pieces(random, text)
		padded := -1
		if random.IntN(4) == 0 {
			padded = random.IntN(len(frames))
		}
		a, seen := &arriving{}, 0
		for i, payload := range frames {
			f := frame{kind: frameData, length: len(payload)}
			if ends && i == len(frames)-1 {
				f.flags = flagEndStream
			}
			if i == padded {
				f.flags |= flagPadded
			}
			if a.begin(f); a.isOver != (i == padded) {
				t.Fatalf("frame %d of %d (padded: %d): over %v", i, len(frames), padded, a.isOver)
			}
			if a.isOver {
				break
			}
			for _, part := range pieces(random, payload) {
				a.pass(part, most)
				seen += len(part)
				want := seen >= 5+length || seen >= 5 && 5+length > most || ends && seen == len(text)
				if a.isOver != want {
					t.Fatalf("%d of %d bytes of a message of %d: over %v", seen, len(text), length, a.isOver)
				}
				if want {
					break
				}
			}
			if a.isOver {
				break
			}
		}
	}
	a := &arriving{}
	if a.begin(frame{kind: frameData, flags: flagEndStream}); !a.isOver {
		t.Error("an empty frame ends the stream, and the message is not over")
	}
}

// A call waits until gRPC has its whole message: until Read has returned the last byte, and is called
// again. It waits no longer than its context, and never for a stream without a message.
func TestCallsWaitForTheirMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, remote := net.Pipe()
		c := newClient(server, budget.New(1<<20), &buffers.Pool{})
		text := grpcMessage(100)
		go func() {
			sent := append([]byte(preface), wire(frame{kind: frameHeaders, flags: flagEndHeaders, stream: 1, length: 10})...)
			sent = append(append(sent, wire(frame{kind: frameData, stream: 1, length: len(text)})[:9]...), text...)
			_, _ = remote.Write(append(sent, wire(frame{kind: frameHeaders, flags: flagEndHeaders | flagEndStream, stream: 3, length: 10})...)) // the reader sees a failure
		}()
		waiting := func(ctx context.Context, stream uint32) chan struct{} {
			done := make(chan struct{})
			go func() {
				c.await(ctx, stream)
				close(done)
			}()
			synctest.Wait()
			return done
		}
		isDone := func(done chan struct{}) bool {
			synctest.Wait()
			select {
			case <-done:
				return true
			default:
				return false
			}
		}
		b := make([]byte, 1000)
		read := func() {
			if _, err := c.Read(b); err != nil {
				t.Fatal(err)
			}
		}
		read() // to the end of the headers
		ctx, cancel := context.WithCancel(t.Context())
		given, kept := waiting(ctx, 1), waiting(t.Context(), 5)
		cancel()
		if !isDone(given) || !isDone(kept) {
			t.Error("a call waits behind its end, or on a stream that is not open")
		}
		first := waiting(t.Context(), 1)
		b = b[:50]
		read()
		if isDone(first) {
			t.Error("a part of the message is enough")
		}
		b = b[:cap(b)]
		read()
		if isDone(first) {
			t.Error("gRPC has not parsed the end")
		}
		if !isDone(waiting(t.Context(), 3)) {
			t.Error("a call without a message waits")
		}
		go func() { _, _ = c.Read(b) }() // until the connection is closed
		if !isDone(first) {
			t.Error("gRPC has the message, and its call waits")
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The first large tensor of a message in parts lies where the model can read it in place, if the buffer
// has room for that. Its bytes are the same.
func TestTensorsAreAligned(t *testing.T) {
	t.Parallel()
	const partSize = 16 << 10
	for id := range 2 * alignment {
		for _, size := range []int{40_000, 65_400} {
			in := &pb.ModelInferRequest_InferInputTensor{Name: "X", Datatype: "UINT8", Shape: []int64{int64(size)}}
			data := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7}, size/7+1)[:size]
			text, err := proto.Marshal(&pb.ModelInferRequest{ModelName: "m", Id: string(make([]byte, id)), Inputs: []*pb.ModelInferRequest_InferInputTensor{in}, RawInputContents: [][]byte{data}})
			if err != nil {
				t.Fatal(err)
			}
			var parts mem.BufferSlice
			for at := 0; at < len(text); at += partSize {
				parts = append(parts, mem.SliceBuffer(text[at:min(at+partSize, len(text))]))
			}
			m := &message{}
			c := newCodec(&buffers.Pool{}, nil)
			if err := c.Unmarshal(parts, m); err != nil || m.err != nil || len(m.raw) != 1 || !bytes.Equal(m.raw[0], data) {
				t.Fatalf("an id of %d bytes, %d bytes: %v, %v, %d tensors", id, size, err, m.err, len(m.raw))
			}
			hasRoom := c.buffers.Capacity(len(text)+alignment-1) == c.buffers.Capacity(len(text))
			if at := uintptr(unsafe.Pointer(unsafe.SliceData(m.raw[0]))); at%alignment != 0 && hasRoom {
				t.Errorf("an id of %d bytes, %d bytes: the tensor begins %d bytes behind a line", id, size, at%alignment)
			}
			m.reset()
		}
	}
}
