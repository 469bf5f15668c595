package grpcapi

import (
	"io"
	"net"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"tuner/engine"
	"tuner/engine/budget"
	"tuner/engine/buffers"
	"tuner/engine/fault"
	"tuner/model/modelconfig/configpb"
)

// wire returns a frame with a payload of zeros.
func wire(f frame) []byte {
	b := []byte{byte(f.length >> 16), byte(f.length >> 8), byte(f.length), f.kind, f.flags, 0, 0, byte(f.stream >> 8), byte(f.stream)}
	return append(b, make([]byte, f.length)...)
}

// The client follows a connection's frames to the byte. The bytes of a stream are charged until it
// ends, in either direction, or its message is dropped. gRPC refuses frames for a stream that has
// ended.
func TestClientFollowsFrames(t *testing.T) {
	t.Parallel()
	b := budget.New(1 << 20)
	server, remote := net.Pipe()
	defer remote.Close()
	c := newClient(server, b, &buffers.Pool{})
	used := func(what string, want int64) {
		t.Helper()
		if b.Used() != want {
			t.Errorf("%s: %d bytes are charged, want %d", what, b.Used(), want)
		}
	}
	read := func(sent []byte) {
		t.Helper()
		go func() { _, _ = remote.Write(sent) }() // the reader sees a failure
		if _, err := io.ReadFull(c, make([]byte, len(sent))); err != nil {
			t.Fatal(err)
		}
	}
	write := func(f frame) {
		t.Helper()
		b := wire(f)
		go func() { _, _ = io.ReadFull(remote, make([]byte, len(b))) }()
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	open := func(stream uint32) []byte { return wire(frame{kind: frameHeaders, stream: stream, length: 100}) }
	data := func(stream uint32, n int) []byte { return wire(frame{kind: frameData, stream: stream, length: n}) }
	const call = streamBytes + 100
	read(append([]byte(preface), open(1)...))
	used("a call", call)
	read(data(1, 1000))
	read(wire(frame{kind: frameContinuation, stream: 1, length: 20}))
	used("its message", call+1020)
	write(frame{kind: frameHeaders, stream: 1, length: 50})
	used("headers of the answer", call+1020)
	c.leave(1, 600)
	used("a message that is dropped", call+420)
	c.leave(1, 10_000) // the decompressed message is longer than the bytes received
	used("another one", call+20)
	read(append(open(3), data(3, 500)...))
	used("a second call", 2*call+520)
	write(frame{kind: frameHeaders, flags: flagEndStream, stream: 1})
	used("the first is answered", call+500)
	read(data(1, 300))
	c.leave(1, 300)
	used("more for it", call+500)
	read(wire(frame{kind: frameHeaders, stream: 1, length: 100}))
	used("its trailers", call+500)
	read(wire(frame{kind: frameReset, stream: 3, length: 4}))
	used("the second is given up", 0)
	read(append(open(5), data(5, 7)...))
	write(frame{kind: frameReset, stream: 5, length: 4})
	used("the third is reset", 0)
	read(append(open(7), data(7, 7)...))
	answer := c.take(5000)
	used("an answer", call+7+8192)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	used("the connection has ended", 0)
	sent{c}.Put(answer)
	if c.take(5000) != nil {
		t.Error("an answer for a connection that has ended")
	}
	used("late ones", 0)
}

// However the bytes arrive, Read passes on all of them, and ends with the headers of each new
// stream. That stream is then the newest.
func TestReadEndsWithTheHeadersOfACall(t *testing.T) {
	t.Parallel()
	head := func(stream uint32, flags byte, n int) []byte {
		return wire(frame{kind: frameHeaders, flags: flags, stream: stream, length: n})
	}
	rest := func(stream uint32, flags byte) []byte {
		return wire(frame{kind: frameContinuation, flags: flags, stream: stream, length: 7})
	}
	data := func(stream uint32) []byte { return wire(frame{kind: frameData, stream: stream, length: 5}) }
	parts := [][]byte{ // each but the last ends with the headers of a call
		slices.Concat([]byte(preface), head(1, flagEndHeaders, 10)),
		slices.Concat(data(1), head(3, 0, 10), rest(3, 0), rest(3, flagEndHeaders)),
		slices.Concat(data(1), data(3), head(5, flagEndHeaders|flagEndStream, 0)),
		head(7, flagEndHeaders, 3),
		slices.Concat(data(3), data(7)),
	}
	sent := slices.Concat(parts...)
	for step := 1; step <= len(sent); step++ {
		server, remote := net.Pipe()
		c := newClient(server, budget.New(1<<20), &buffers.Pool{})
		go func() {
			for part := range slices.Chunk(sent, step) {
				_, _ = remote.Write(part) // the reader sees a failure
			}
			_ = remote.Close()
		}()
		var got []byte
		ends := map[int]uint32{} // the newest stream by the number of bytes after a Read
		for b := make([]byte, len(sent)); ; {
			n, err := c.Read(b)
			if err != nil {
				break
			}
			got = append(got, b[:n]...)
			ends[len(got)] = streamOf(c.begin(t.Context()))
		}
		if !slices.Equal(got, sent) {
			t.Errorf("steps of %d: %d of %d bytes are passed on, or others", step, len(got), len(sent))
		}
		at := 0
		for i, part := range parts[:4] {
			at += len(part)
			if want := uint32(2*i + 1); ends[at] != want {
				t.Errorf("steps of %d: after %d bytes the newest stream is %d, want %d", step, at, ends[at], want)
			}
		}
		_ = c.Close()
	}
}

// A compressed answer stays charged until its last byte is written, in whatever parts, or its stream
// ends.
func TestCompressedAnswersAreChargedUntilWritten(t *testing.T) {
	t.Parallel()
	message := func(n int) []byte { return append([]byte{1, 0, 0, 0, byte(n)}, make([]byte, n)...) }
	// Two messages, an empty one, and the beginning of a fourth.
	data := slices.Concat(message(100), message(7), message(0), message(50)[:30])
	for step := 1; step <= len(data); step++ {
		b := budget.New(1 << 20)
		server, remote := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, remote) }() // until the server closes the connection
		c := newClient(server, b, &buffers.Pool{})
		c.streams[1], c.streams[3] = arrived{}, arrived{}
		if !c.hold(1, 1000) || !c.hold(1, 2000) || !c.hold(1, 0) || !c.hold(1, 4000) || !c.hold(3, 8000) || c.hold(1, 1<<20) {
			t.Fatal("the budget has room for five answers, and not for a MiB")
		}
		seen := 0
		want := func() (left int64) {
			left = 8000
			for end, charge := range map[int]int64{105: 1000, 105 + 12: 2000, 1 << 20: 4000} {
				if seen < end {
					left += charge
				}
			}
			return left
		}
		for part := range slices.Chunk(data, step) {
			head := wire(frame{kind: frameData, stream: 1, length: len(part)})[:9]
			if _, err := c.Write(append(head, part...)); err != nil {
				t.Fatal(err)
			}
			if seen += len(part); b.Used() != want() {
				t.Errorf("steps of %d: %d bytes are charged after %d, want %d", step, b.Used(), seen, want())
			}
		}
		if _, err := c.Write(wire(frame{kind: frameReset, stream: 1, length: 4})); err != nil {
			t.Fatal(err)
		}
		if b.Used() != 8000 {
			t.Errorf("steps of %d: %d bytes are charged after the end of the stream", step, b.Used())
		}
		if !c.hold(1, 500) || b.Used() != 8000 {
			t.Error("an answer of a stream that has ended is charged")
		}
		_ = c.Close()
		if b.Used() != 0 {
			t.Errorf("%d bytes are charged after the end of the connection", b.Used())
		}
	}
}

// The same frames are found for any division of the bytes.
func FuzzFrames(f *testing.F) {
	f.Add(append(wire(frame{kind: frameHeaders, stream: 1, length: 5}), wire(frame{kind: frameData, flags: 1, stream: 1, length: 3})...), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		var whole, parts []frame
		(&frames{}).scan(b, func(f frame) bool { whole = append(whole, f); return false }, nil)
		s := &frames{}
		for part := range slices.Chunk(b, int(step)+1) {
			s.scan(part, func(f frame) bool { parts = append(parts, f); return false }, nil)
		}
		if !slices.Equal(whole, parts) {
			t.Errorf("%v at once, %v in steps of %d", whole, parts, int(step)+1)
		}
		if len(whole) > len(b)/9 {
			t.Errorf("%d frames of %d bytes", len(whole), len(b))
		}
	})
}

// Typed contents take the memory of their wire form, which is charged, for any number of elements.
func TestContentsAllocateOnce(t *testing.T) {
	memory := budget.New(1 << 20)
	for _, count := range []int{10, 10_000} {
		var b []byte
		for range count {
			b = append(b, protowire.AppendTag(nil, bytesContents, protowire.BytesType)...)
			b = append(b, 0)
		}
		tensor := &engine.Tensor{DataType: configpb.DataType_TYPE_STRING}
		m := &message{request: engine.Request{Memory: memory.Open(nil)}}
		allocations := testing.AllocsPerRun(10, func() {
			c := &contents{}
			if err := c.add(b); err != nil {
				t.Fatal(err)
			}
			m.request.Memory.Give(m.charged)
			m.charged = 0
			if err := m.decodeContents(tensor, c); err != nil {
				t.Fatal(err)
			}
		})
		if len(tensor.Data) != 4*count || memory.Used() != int64(4*count) || allocations > 10 {
			t.Errorf("%d strings: %d bytes of them, %d charged, %v allocations", count, len(tensor.Data), memory.Used(), allocations)
		}
		m.reset()
	}
	m := &message{request: engine.Request{Memory: memory.Open(nil)}}
	c := &contents{counts: [9]int{bytesContents: 200_000}}
	if err := m.decodeContents(&engine.Tensor{DataType: configpb.DataType_TYPE_STRING}, c); fault.CodeOf(err) != fault.Exhausted || memory.Used() != 0 {
		t.Errorf("more than there is: %v, %d bytes are charged", err, memory.Used())
	}
}
