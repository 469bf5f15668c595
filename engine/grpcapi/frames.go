package grpcapi

import "encoding/binary"

// Types and flags of HTTP/2's frames (RFC 9113, section 6), and the bytes that a client sends
// before them (section 3.4).
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameReset        = 0x3
	frameContinuation = 0x9
	flagEndStream     = 0x1
	preface           = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

// frame is the head of a frame.
type frame struct {
	kind, flags byte
	stream      uint32
	length      int // length of the payload
}

// frames follows one direction of an HTTP/2 connection.
type frames struct {
	skip int // bytes up to the next head
	head [9]byte
	have int // bytes of the head so far
}

// scan passes the frames whose heads end in b to take. Their payload need not have arrived.
func (s *frames) scan(b []byte, take func(frame)) {
	for {
		n := min(s.skip, len(b))
		s.skip, b = s.skip-n, b[n:]
		n = copy(s.head[s.have:], b)
		if s.have, b = s.have+n, b[n:]; s.have < len(s.head) {
			return
		}
		h := &s.head
		s.have, s.skip = 0, int(h[0])<<16|int(h[1])<<8|int(h[2])
		take(frame{kind: h[3], flags: h[4], stream: binary.BigEndian.Uint32(h[5:]) &^ (1 << 31), length: s.skip})
	}
}
