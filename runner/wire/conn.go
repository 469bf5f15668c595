package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"tuner/engine/api"
)

// Prepared is an encoded request for any number of connections of the same Options. Connections may
// send it concurrently.
type Prepared struct {
	// HTTP: as it is sent; gRPC: the message with its head, which is sent in frames
	message  []byte
	expected []api.Tensor // nil: outputs are not compared
}

// Size returns the number of bytes that Send writes. Over gRPC, frame heads and header fields add
// to it.
func (p *Prepared) Size() int { return len(p.message) }

// Conn is a connection with requests in flight, each in a slot. It has one slot, or over gRPC up to
// Options.Share. Different goroutines may call Send and Receive, in turn.
type Conn struct {
	*link
	exchange exchange
	waiting  []bool // by slot: a request is in flight
	failure  error  // why the connection is broken
}

func newConn(l *link, e exchange, slots int) *Conn {
	return &Conn{link: l, exchange: e, waiting: make([]bool, slots)}
}

// exchange implements a protocol: it sends requests and receives their answers over a link. An
// *api.StatusError, a *MismatchError and errNotTaken leave the link usable. After any other error,
// of any slot, the link is unusable.
type exchange interface {
	send(slot int, p *Prepared) error
	receive() (slot int, final, null bool, err error)
	// answering reports whether a part of the answer to the latest request in a slot has arrived.
	answering(slot int) bool
}

// UnansweredError means that the server closed the connection without a byte of an answer to a
// request. Usually it had closed it already, since it was idle.
type UnansweredError struct{ Cause error }

func (e *UnansweredError) Error() string { return e.Cause.Error() }

func (e *UnansweredError) Unwrap() error { return e.Cause }

// Unanswered returns true: the request may be sent once more, over another connection.
func (e *UnansweredError) Unanswered() bool { return true }

// Slots returns how many requests may be in flight. Slots are numbered from 0.
func (c *Conn) Slots() int { return len(c.waiting) }

// Send writes the request. It blocks only while the socket's buffer is full, or while the peer's
// flow control delays it. With several slots, requests are sent together, in the next Receive at
// the latest. A request that is in flight in the slot is given up. Errors appear in Receive.
func (c *Conn) Send(slot int, p *Prepared) {
	c.waiting[slot] = true
	if c.failure != nil {
		return
	}
	if err := c.exchange.send(slot, p); err != nil {
		c.fail(err)
	}
}

// Receive blocks for the next response to any request in flight. final: it was the last one of the
// request in the slot. null: it carried no outputs.
//
// An error that the server answered is an *api.StatusError. A wrong output is a *MismatchError.
// After any other error, such as an *UnansweredError, the connection is broken, and Receive returns
// the error for each request in flight in turn.
func (c *Conn) Receive() (slot int, final, null bool, err error) {
	if c.failure == nil {
		slot, final, null, err = c.exchange.receive()
		switch {
		case err == nil || isAnswer(err):
			c.waiting[slot] = !final
			return slot, final, null, err
		case errors.Is(err, errNotTaken): // other requests may still be answered
			c.waiting[slot] = false
			return slot, true, false, c.explain(slot, err)
		}
		c.fail(err)
	}
	slot = max(0, slices.Index(c.waiting, true))
	c.waiting[slot] = false
	return slot, true, false, c.explain(slot, c.failure)
}

// fail breaks the connection with an error.
func (c *Conn) fail(err error) {
	c.broken.Store(true)
	c.failure = err
}

// explain returns the error for the request in a slot.
func (c *Conn) explain(slot int, err error) error {
	if !c.exchange.answering(slot) && isEnd(err) {
		return &UnansweredError{err}
	}
	return err
}

// isEnd reports whether an error comes from a connection that the server has closed.
func isEnd(err error) bool {
	for _, end := range []error{io.EOF, syscall.ECONNRESET, syscall.EPIPE, errNotTaken} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// isAnswer reports whether an error is an answer, which leaves the connection usable.
func isAnswer(err error) bool {
	var status *api.StatusError
	var mismatch *MismatchError
	return errors.As(err, &status) || errors.As(err, &mismatch)
}

// Broken reports whether the connection takes no further request, since it failed or since the
// server announced its end.
func (c *Conn) Broken() bool { return c.broken.Load() }

// Interrupt makes Send and Receive fail at once, and in all later calls. Any goroutine may call it.
func (c *Conn) Interrupt() {
	c.broken.Store(true)
	// a deadline in the past; it fails only on a closed connection, which is also interrupted
	_ = c.raw.SetDeadline(time.Unix(1, 0))
}

// Close closes the connection. It may be called twice.
func (c *Conn) Close() error {
	c.broken.Store(true)
	if err := c.raw.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("cannot close the connection: %w", err)
	}
	return nil
}

// inputBuffer is the size of a connection's read buffer in bytes. The head of an answer and small
// tensors fit in one read.
const inputBuffer = 4 << 10

// skipBuffer is the size in bytes of the reads that discard large answers.
const skipBuffer = 64 << 10

// link is the transport below a protocol.
type link struct {
	raw    net.Conn // TCP
	conn   net.Conn // raw, or TLS over it
	in     *bufio.Reader
	waste  []byte // receives large parts of answers that are discarded; nil until there is one
	broken atomic.Bool
}

// write sends bytes in one call.
func (l *link) write(message []byte) error {
	if _, err := l.conn.Write(message); err != nil {
		return fmt.Errorf("cannot send a request: %w", err)
	}
	return nil
}

// skip discards bytes of an answer.
func (l *link) skip(length int64) error {
	if n := min(length, int64(l.in.Buffered()+inputBuffer)); n == length {
		if _, err := l.in.Discard(int(n)); err != nil {
			return bodyError(err)
		}
		return nil
	}
	if l.waste == nil {
		l.waste = make([]byte, skipBuffer)
	}
	for length > 0 { // a read larger than the reader's buffer bypasses it
		n, err := l.in.Read(l.waste[:min(length, skipBuffer)])
		if err != nil {
			return bodyError(err)
		}
		length -= int64(n)
	}
	return nil
}

// readError explains a failed read.
func readError(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the server closed the connection: %w", err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the server closed the connection in the middle of an answer: %w", err)
	default:
		return fmt.Errorf("cannot read an answer: %w", err)
	}
}

// bodyError explains a failed read inside an answer.
func bodyError(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return readError(err)
}
