package rest

import (
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"tuner/engine/budget"
)

const (
	slack = 10 * time.Second // how much earlier than wanted a deadline may be
	// bytes of an answer that are written before it counts that the client reads
	atATime = 256 << 10
)

// listener makes connections of type conn.
type listener struct {
	net.Listener
	memory *budget.Budget
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	// its reader and writer see the end; TLS would first wait until its last record is written
	return &conn{Conn: c, account: l.memory.Open(func() { _ = beneath(c).Close() })}, nil
}

// conn sets a deadline only if it is needed and differs enough from the last one. fasthttp asks for
// three with every request, which costs as much as reading its headers. Only one goroutine reads
// from a connection, and sets its deadlines.
type conn struct {
	net.Conn
	wanted     time.Time // for reads
	read, sent time.Time // the deadlines that are set

	account *budget.Account
	answers atomic.Int64 // bytes charged for answers
	// bytes of answers that are not written yet; used only by the goroutine that serves the
	// connection
	left    int
	garbage atomic.Int64 // bytes of requests and answers that are no longer used
	// the trace whose answer is being written; nil: none
	sending atomic.Pointer[sending]
}

// SyscallConn gives access to the descriptor, to check the connection while its request waits.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := beneath(c.Conn).(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// beneath returns the connection under TLS, if there is TLS.
func beneath(c net.Conn) net.Conn {
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
}

// owe takes over the charge for an answer of length bytes, until it is written or the connection
// ends.
func (c *conn) owe(charged, length int) {
	c.answers.Add(int64(charged))
	c.left += length
	c.account.Owe(charged)
}

// settle gives back the bytes charged for answers.
func (c *conn) settle() {
	n := int(c.answers.Swap(0))
	c.account.Owe(-n)
	c.account.Give(n)
	if n > keptBuffer { // a smaller one is used again
		c.garbage.Add(int64(n))
	}
}

// Write writes in steps, to distinguish a client that reads slowly from one that does not read.
func (c *conn) Write(p []byte) (int, error) {
	written := 0
	for {
		n, err := c.Conn.Write(p[written:min(len(p), written+atATime)])
		written += n
		if err != nil {
			c.sending.Swap(nil).end(false)
			return written, err
		}
		if written == len(p) {
			break
		}
		c.account.Moved()
	}
	c.traced(written)
	if c.left > 0 {
		if c.left -= written; c.left <= 0 {
			c.left = 0
			c.settle()
		}
	}
	if c.garbage.Load() > 0 && c.left == 0 { // the client has its answer
		c.account.Discard(int(c.garbage.Swap(0)))
	}
	return written, nil
}

// Close gives back the bytes that the client has not read.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.sending.Swap(nil).end(false)
	c.settle()
	c.account.Discard(int(c.garbage.Swap(0)))
	c.account.Close()
	return err
}

// SetReadDeadline takes effect at the next read.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.wanted = t
	return nil
}

func (c *conn) Read(p []byte) (int, error) {
	if isStale(c.read, c.wanted) {
		c.read = c.wanted
		if err := c.Conn.SetReadDeadline(c.wanted); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(p)
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	if !isStale(c.sent, t) {
		return nil
	}
	c.sent = t
	return c.Conn.SetWriteDeadline(t)
}

func isStale(set, wanted time.Time) bool {
	late := wanted.Sub(set)
	return late < 0 || late > slack
}
