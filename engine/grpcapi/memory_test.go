package grpcapi_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"tuner/engine/enginetest"
	"tuner/internal/alloctest"
)

// Types and flags of HTTP/2's frames (RFC 9113, section 6).
const (
	frameData, frameHeaders, frameSettings, frameWindowUpdate = 0x0, 0x1, 0x4, 0x8
	flagEndHeaders                                            = 0x4
)

// frame is a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	return append(binary.BigEndian.AppendUint32([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}, stream), payload...)
}

// hello returns the bytes that begin a connection.
func hello() []byte {
	return append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(frameSettings, 0, 0, nil)...)
}

// call opens a stream with the headers of a call, each a literal of HPACK (RFC 7541, section
// 6.2.2).
func call(stream uint32, method string, more ...string) []byte {
	var headers []byte
	for i, text := range append([]string{":method", "POST", ":scheme", "http", ":path", "/inference.GRPCInferenceService/" + method,
		":authority", "engine", "content-type", "application/grpc"}, more...) {
		if i%2 == 0 { // a name
			headers = append(headers, 0)
		}
		headers = append(append(headers, byte(len(text))), text...)
	}
	return frame(frameHeaders, flagEndHeaders, stream, headers)
}

// awaitFrame reads frames until is returns true for the head of one.
func awaitFrame(t *testing.T, conn net.Conn, is func(head []byte) bool) {
	t.Helper()
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(conn, head); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(head[0])<<16|int64(head[1])<<8|int64(head[2])); err != nil {
			t.Fatal(err)
		}
		if is(head) {
			return
		}
	}
}

// A message that announces almost 2 GiB takes memory only for the bytes received.
func TestAnnouncedLengthAllocatesNothing(t *testing.T) {
	e := enginetest.Start(t, enginetest.Options{})
	conn, err := net.Dial("tcp", e.Addresses.GRPC)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil { // so that it fails instead of hanging
		t.Fatal(err)
	}
	sent := append(hello(), call(1, "ModelInfer")...)
	sent = append(sent, frame(frameData, 0, 1, append([]byte{0, 0x7f, 0, 0, 0}, make([]byte, 1000)...))...)
	took := alloctest.Bytes(func() {
		if _, err := conn.Write(sent); err != nil {
			t.Fatal(err)
		}
		// The server has read the length once it opens the window for the rest.
		awaitFrame(t, conn, func(head []byte) bool { return head[3] == frameWindowUpdate && binary.BigEndian.Uint32(head[5:]) == 1 })
	})
	if took > 4<<20 {
		t.Errorf("%d bytes were allocated for 1000 bytes of a message", took)
	}
}
