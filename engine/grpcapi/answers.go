package grpcapi

import (
	"context"
	"encoding/binary"

	"google.golang.org/grpc/mem"

	"tuner/engine"
	"tuner/engine/fault"
)

// answers follows the compressed answers of a stream until they are written. gRPC compresses them
// into memory that no pool counts for a client. So their bytes before the compression stay charged.
type answers struct {
	charged []int // of each answer that is not written to its end, oldest first
	// the message that is being written: a flag and its length, and the bytes after that
	head [5]byte
	have int // bytes of head so far
	rest int // bytes of the message that are still to come
}

// written passes over data of the stream. It returns the charge of the answers that end there.
func (a *answers) written(data []byte) (charge int) {
	for len(data) > 0 {
		n := copy(a.head[a.have:], data)
		if n > 0 {
			if a.have += n; a.have == len(a.head) {
				a.rest = int(binary.BigEndian.Uint32(a.head[1:]))
			}
		} else {
			n = min(a.rest, len(data))
			a.rest -= n
		}
		data = data[n:]
		if a.have < len(a.head) || a.rest > 0 {
			continue
		}
		a.have = 0
		if len(a.charged) > 0 {
			charge += a.charged[0]
			a.charged = a.charged[1:]
		}
	}
	return charge
}

// total returns the charge of all answers. a may be nil.
func (a *answers) total() (charge int) {
	if a != nil {
		for _, n := range a.charged {
			charge += n
		}
	}
	return charge
}

// hold charges the next answer of a stream, until it is written or the stream ends. It reports
// whether there is room. Each answer must be passed if one of the stream is.
func (c *client) hold(stream uint32, n int) bool {
	if c == nil {
		return true
	}
	if !c.account.Take(n) {
		return false
	}
	c.mu.Lock()
	s, isOpen := c.streams[stream]
	if isOpen {
		if s.answers == nil {
			s.answers = &answers{}
			c.streams[stream] = s
		}
		s.answers.charged = append(s.answers.charged, n)
	}
	c.mu.Unlock()
	if isOpen {
		c.account.Owe(n)
	} else { // gRPC drops the answer
		c.account.Give(n)
	}
	return true
}

// written follows a part of a frame that is written. It returns the charge of the answers that end
// with it.
func (c *client) written(f frame, payload []byte) (charge int) {
	if f.kind != frameData {
		return 0
	}
	a := c.streams[f.stream].answers
	if a == nil {
		return 0
	}
	return a.written(payload)
}

// compressed chooses the compression of a call's answers, and reports whether they are compressed. It
// returns the encoder for them.
func (s *service) compressed(ctx context.Context, encode encoder) (write encoder, isCompressed bool, err error) {
	if isCompressed, err = s.compression.Choose(ctx); isCompressed {
		encode = holding(encode, streamOf(ctx))
	}
	return encode, isCompressed, err
}

// holding returns encode for a stream whose answers are compressed.
func holding(encode encoder, stream uint32) encoder {
	return func(r *engine.Response, c *client) (mem.BufferSlice, error) {
		b, err := encode(r, c)
		if err == nil && !c.hold(stream, b.Len()) {
			b.Free()
			return nil, fault.Full(c.account)
		}
		return b, err
	}
}
