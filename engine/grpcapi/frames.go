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
	flagEndHeaders    = 0x4
	flagPadded        = 0x8
	preface           = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

// frame is the head of a frame.
type frame struct {
	kind, flags byte
	stream      uint32
	length      int // length of the payload
}

// endsHeaders reports whether the headers of a stream end with the frame.
func (f frame) endsHeaders() bool {
	return (f.kind == frameHeaders || f.kind == frameContinuation) && f.flags&flagEndHeaders != 0
}

// frames follows one direction of an HTTP/2 connection.
type frames struct {
	skip  int  // bytes up to the next head
	stops bool // scan stops before the next head
	head  [9]byte
	have  int   // bytes of the head so far
	last  frame // the one whose payload is skipped
}

// isInside reports whether a frame has begun and not ended.
func (s *frames) isInside() bool { return s.skip > 0 || s.have > 0 }

// scan passes the frames whose heads end in b to take. Their payload need not have arrived. If take
// returns true, scan stops after the frame's payload. It returns how many bytes it has seen. It
// passes payloads in b to body, in pieces as they come. body may be nil.
func (s *frames) scan(b []byte, take func(frame) (stop bool), body func(frame, []byte)) int {
	for at := 0; ; {
		n := min(s.skip, len(b)-at)
		if n > 0 && body != nil {
			body(s.last, b[at:at+n])
		}
		s.skip, at = s.skip-n, at+n
		if s.stops && s.skip == 0 {
			s.stops = false
			return at
		}
		n = copy(s.head[s.have:], b[at:])
		if s.have, at = s.have+n, at+n; s.have < len(s.head) {
			return at
		}
		h := &s.head
		s.have, s.skip = 0, int(h[0])<<16|int(h[1])<<8|int(h[2])
		s.last = frame{kind: h[3], flags: h[4], stream: binary.BigEndian.Uint32(h[5:]) &^ (1 << 31), length: s.skip}
		s.stops = take(s.last)
	}
}
