package grpcapi_test

import (
	"encoding/binary"
	"net"
	"testing"
	"time"

	"tuner/engine/enginetest"
)

// A client that pauses inside of a large message is heard in the meantime.
func TestPausesInLargeMessages(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	conn, err := net.Dial("tcp", e.Addresses.GRPC)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil { // so that it fails instead of hanging
		t.Fatal(err)
	}
	const length, part = 1 << 20, 16 << 10
	sent := append(hello(), call(1, "ModelInfer")...)
	sent = append(sent, frame(frameData, 0, 1, binary.BigEndian.AppendUint32([]byte{0}, length))...)
	for range length / part / 4 {
		sent = append(sent, frame(frameData, 0, 1, make([]byte, part))...)
	}
	const framePing, ack = 0x6, 0x1
	for range 2 {
		if _, err := conn.Write(sent); err != nil {
			t.Fatal(err)
		}
		sent = frame(framePing, 0, 0, make([]byte, 8))
		if _, err := conn.Write(sent); err != nil {
			t.Fatal(err)
		}
		awaitFrame(t, conn, func(head []byte) bool { return head[3] == framePing && head[4] == ack })
		sent = frame(frameData, 0, 1, make([]byte, part))
	}
}
