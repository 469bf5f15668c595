package grpcapi

import "time"

// pause bounds the wait for the rest of what a client has begun: a frame, or headers in several
// frames. Nothing else bounds it, since the reader of a connection waits inside of them. Clients
// may be idle elsewhere.
type pause struct {
	isOpen    bool      // HTTP/2's handshake is over, which gRPC bounds itself
	inHeaders bool      // headers have begun, and a frame is missing that ends them
	atHead    bool      // the last read waited for the head of a frame, or of the first of headers
	began     time.Time // when the rest was first waited for; zero: it was not
	until     time.Time // the limit of reads
}

// next begins another frame.
func (p *pause) next(f frame) {
	if !p.inHeaders {
		p.began = time.Time{}
	}
	p.inHeaders = (f.kind == frameHeaders || p.inHeaders) && !f.endsHeaders()
}

// SetDeadline bounds reads and writes. gRPC calls it at the beginning of its handshake, and with
// zero at the end.
func (c *client) SetDeadline(t time.Time) error {
	c.pause.isOpen = t.IsZero()
	return c.Conn.SetDeadline(t)
}

// bound limits the next read, if a frame or headers are incomplete.
func (c *client) bound() error {
	p, until := &c.pause, time.Time{}
	if !p.isOpen {
		return nil
	}
	// The frame before, or headers, may have ended in the middle of what was read.
	if atHead := !p.inHeaders && c.in.skip == 0; atHead != p.atHead {
		p.atHead, p.began = atHead, time.Time{}
	}
	if p.inHeaders || c.in.isInside() {
		if p.began.IsZero() {
			p.began = time.Now()
		}
		until = p.began.Add(handshake)
	}
	if until.Equal(p.until) {
		return nil
	}
	p.until = until
	return c.Conn.SetReadDeadline(until)
}
