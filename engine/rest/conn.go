package rest

import (
	"net"
	"time"
)

// slack is how much earlier than asked a deadline may come.
const slack = 10 * time.Second

// listener makes connections of type conn.
type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return &conn{TCPConn: tcp}, err
	}
	return c, err
}

// conn sets a deadline only if it is needed and differs enough from the last one: fasthttp asks for three with every request,
// which costs as much as reading its headers. Only one goroutine reads from a connection, and sets its deadlines.
type conn struct {
	*net.TCPConn
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
		if err := c.TCPConn.SetReadDeadline(c.wanted); err != nil {
			return 0, err
		}
	}
	return c.TCPConn.Read(p)
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	if !isStale(c.sent, t) {
		return nil
	}
	c.sent = t
	return c.TCPConn.SetWriteDeadline(t)
}

func isStale(set, wanted time.Time) bool {
	late := wanted.Sub(set)
	return late < 0 || late > slack
}
