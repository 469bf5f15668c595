package rest

import (
	"net"
	"syscall"
	"time"
)

// slack is how much earlier than asked a deadline may come.
const slack = 10 * time.Second

// listener makes connections of type conn.
type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if s, ok := c.(socket); ok {
		return &conn{socket: s}, err
	}
	return c, err
}

// socket is a connection that can be looked at without reading from it.
type socket interface {
	net.Conn
	syscall.Conn
}

// conn sets a deadline only if it is needed and differs enough from the last one: fasthttp asks for three with every request,
// which costs as much as reading its headers. Only one goroutine reads from a connection, and sets its deadlines.
type conn struct {
	socket
	wanted     time.Time // for reads
	read, sent time.Time // the deadlines that are set
}

// SetReadDeadline has its effect when something is read.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.wanted = t
	return nil
}

func (c *conn) Read(p []byte) (int, error) {
	if isStale(c.read, c.wanted) {
		c.read = c.wanted
		if err := c.socket.SetReadDeadline(c.wanted); err != nil {
			return 0, err
		}
	}
	return c.socket.Read(p)
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	if !isStale(c.sent, t) {
		return nil
	}
	c.sent = t
	return c.socket.SetWriteDeadline(t)
}

func isStale(set, wanted time.Time) bool {
	late := wanted.Sub(set)
	return late < 0 || late > slack
}
