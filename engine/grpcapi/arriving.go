package grpcapi

import (
	"context"
	"encoding/binary"
)

// arriving follows the first message of a stream while it arrives.
//
// gRPC wakes the goroutine that receives a message for each of its frames, and a frame has 16 KiB at
// most. So the goroutine of an inference waits here instead, until the last byte has arrived.
type arriving struct {
	head    [5]byte       // a flag and the message's length
	have    int           // bytes of head so far
	missing int           // bytes of the message that are still to come, once head is complete
	last    int           // bytes that are still to come of the frame that ends the stream
	isLast  bool          // that frame has begun
	isOver  bool          // the message has arrived, or is not followed
	waiter  chan struct{} // closed once gRPC has the message; nil: nobody waits
}

// begin passes over the head of a frame with data. Padding takes of the stream's window what a message
// needs, so a padded message is not followed.
func (a *arriving) begin(f frame) {
	if f.flags&flagEndStream != 0 {
		a.last, a.isLast = f.length, true
	}
	a.isOver = f.flags&flagPadded != 0 || a.isLast && a.last == 0
}

// pass passes over data of the stream. A message larger than most is not followed: gRPC refuses it, or
// must open the stream's window for it first.
func (a *arriving) pass(data []byte, most int) {
	n := copy(a.head[a.have:], data)
	if a.have += n; n > 0 && a.have == len(a.head) {
		a.missing = int(binary.BigEndian.Uint32(a.head[1:]))
		a.isOver = a.isOver || len(a.head)+a.missing > most
	}
	a.missing -= len(data) - n
	a.last -= len(data)
	a.isOver = a.isOver || a.have == len(a.head) && a.missing <= 0 || a.isLast && a.last <= 0
}

// message follows a frame of a stream's first message.
func (c *client) message(a *arriving, f frame) {
	if !a.isOver {
		a.begin(f)
		c.tell(a)
	}
}

// arrives follows a part of a frame that is read.
func (c *client) arrives(f frame, payload []byte) {
	if f.kind != frameData {
		return
	}
	s, isOpen := c.streams[f.stream]
	if !isOpen || s.message.isOver {
		return
	}
	s.message.pass(payload, c.most)
	c.tell(&s.message)
	c.streams[f.stream] = s
}

// tell notes the waiter of a message that is over. gRPC has not yet parsed the message's end.
func (c *client) tell(a *arriving) {
	if a.isOver && a.waiter != nil {
		c.told = append(c.told, a.waiter)
		a.waiter = nil
	}
}

// wake wakes those whose message gRPC has by now: it has parsed all that Read has returned, and asks for more.
func (c *client) wake() {
	for _, w := range c.told {
		close(w)
	}
	c.told = emptied(c.told)
}

// await waits until gRPC has the first message of a stream. It returns at once if the message is not
// followed.
func (c *client) await(ctx context.Context, stream uint32) {
	if c == nil {
		return
	}
	var arrived chan struct{}
	c.mu.Lock()
	if s, isOpen := c.streams[stream]; isOpen && !s.message.isOver {
		arrived = make(chan struct{})
		s.message.waiter = arrived
		c.streams[stream] = s
	}
	c.mu.Unlock()
	if arrived == nil {
		return
	}
	select {
	case <-arrived:
	case <-ctx.Done(): // gRPC reports it
	}
}
