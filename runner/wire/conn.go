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

// Prepared is a request as bytes on the wire, for any number of connections of the same Options, also concurrently.
type Prepared struct {
	message  []byte       // HTTP: as it is sent; gRPC: the message with its head, which goes out in frames
	expected []api.Tensor // nil: outputs are not looked at
}

// Size is the number of bytes that Send writes; over gRPC the frames and the header fields come on top.
func (p *Prepared) Size() int { return len(p.message) }

// Conn is a connection with requests in flight, each in a slot: one, or over gRPC as many as Options.Share. Send and Receive
// may be called by different goroutines, in turn.
type Conn struct {
	*link
	exchange exchange
	waiting  []bool // by slot: a request is in flight
	failure  error  // why nothing comes over the connection any more
}

func newConn(l *link, e exchange, slots int) *Conn {
	return &Conn{link: l, exchange: e, waiting: make([]bool, slots)}
}

// exchange is a protocol's way to send requests and to receive their answers over a link. An error that is neither an
// *api.StatusError nor a *MismatchError nor errNotTaken leaves the link unusable, whichever slot it is of.
type exchange interface {
	send(slot int, p *Prepared) error
	receive() (slot int, final, null bool, err error)
	// answering reports whether anything of the answer to the latest request in a slot has come.
	answering(slot int) bool
}

// UnansweredError says that the server closed the connection without a byte of an answer to a request: as a rule it
// had closed it already, for want of requests.
type UnansweredError struct{ Cause error }

func (e *UnansweredError) Error() string { return e.Cause.Error() }

func (e *UnansweredError) Unwrap() error { return e.Cause }

// Unanswered says that the request may be sent once more, over another connection.
func (e *UnansweredError) Unanswered() bool { return true }

// Slots is how many requests may be in flight; they are numbered from 0.
func (c *Conn) Slots() int { return len(c.waiting) }

// Send writes the request. It blocks only while the socket's buffer is full, or while the peer's flow control holds it up.
// Where there are several slots, requests go out together, in the next Receive at the latest, and one that is in flight in
// the slot is given up. What goes wrong is told by Receive.
func (c *Conn) Send(slot int, p *Prepared) {
	c.waiting[slot] = true
	if c.failure != nil {
		return
	}
	if err := c.exchange.send(slot, p); err != nil {
		c.fail(err)
	}
}

// Receive blocks for the next response to any of the requests in flight. final: it was the last one of the request in the
// slot. null: it carried no outputs. An error that the server answered is an *api.StatusError, a wrong output a
// *MismatchError; after any other error, of which one is an *UnansweredError, the connection is broken, and each request in
// flight is told in turn.
func (c *Conn) Receive() (slot int, final, null bool, err error) {
	if c.failure == nil {
		slot, final, null, err = c.exchange.receive()
		switch {
		case err == nil || isAnswer(err):
			c.waiting[slot] = !final
			return slot, final, null, err
		case errors.Is(err, errNotTaken): // others may still be answered
			c.waiting[slot] = false
			return slot, true, false, c.explain(slot, err)
		}
		c.fail(err)
	}
	slot = max(0, slices.Index(c.waiting, true))
	c.waiting[slot] = false
	return slot, true, false, c.explain(slot, c.failure)
}

// fail notes why the connection is broken.
func (c *Conn) fail(err error) {
	c.broken.Store(true)
	c.failure = err
}

// explain is what an error means for the request in a slot.
func (c *Conn) explain(slot int, err error) error {
	if !c.exchange.answering(slot) && isEnd(err) {
		return &UnansweredError{err}
	}
	return err
}

// isEnd reports whether an error is what comes of a connection that the server has closed.
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

// Broken reports whether the connection can take no further request, because it failed or because the server announced
// its end.
func (c *Conn) Broken() bool { return c.broken.Load() }

// Interrupt makes Send and Receive fail, now and from now on. Any goroutine may call it.
func (c *Conn) Interrupt() {
	c.broken.Store(true)
	_ = c.raw.SetDeadline(time.Unix(1, 0)) // in the past; fails only where the connection is closed, which is as good
}

// Close closes the connection. Closing twice is safe.
func (c *Conn) Close() error {
	c.broken.Store(true)
	if err := c.raw.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("cannot close the connection: %w", err)
	}
	return nil
}

// inputBuffer is the size of a connection's read buffer, in bytes: an answer's head and small tensors fit in one read.
const inputBuffer = 4 << 10

// skipBuffer is the size of the reads by which large answers are thrown away, in bytes.
const skipBuffer = 64 << 10

// link is the transport below a protocol.
type link struct {
	raw    net.Conn // TCP
	conn   net.Conn // raw, or TLS over it
	in     *bufio.Reader
	waste  []byte // where large parts of answers go that nobody wants; nil until there is one
	broken atomic.Bool
}

// write sends bytes in one call.
func (l *link) write(message []byte) error {
	if _, err := l.conn.Write(message); err != nil {
		return fmt.Errorf("cannot send a request: %w", err)
	}
	return nil
}

// skip throws bytes of an answer away.
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
	for length > 0 { // a read larger than the reader's buffer passes it by
		n, err := l.in.Read(l.waste[:min(length, skipBuffer)])
		if err != nil {
			return bodyError(err)
		}
		length -= int64(n)
	}
	return nil
}

// readError says what a failed read means.
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

// bodyError is readError inside an answer.
func bodyError(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return readError(err)
}
