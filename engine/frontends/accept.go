package frontends

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A process has few descriptors, and each connection takes one. Connections may have all except
// those that the engine keeps for files, timers and listeners.
//
// When these are used up, each listener still accepts a few more at a time: a new connection ends
// the oldest of these. So a client that connects and asks at once gets an answer, above all a
// health probe, even if idle clients hold all other connections.
const (
	ownDescriptors     = 64   // at least, for the engine itself
	mostOwnDescriptors = 1024 // at most, if an eighth of all is more
	spareConnections   = 16   // per listener
)

// Pauses after an accept that failed since a resource is missing, as in net/http.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// warnEvery is the least interval between two warnings that clients hold all connections.
const warnEvery = time.Minute

// connectionsOf returns how many connections all listeners together may have with the given number
// of descriptors, without the spare ones.
func connectionsOf(descriptors int64, listeners int) int64 {
	own := min(max(descriptors/8, ownDescriptors), mostOwnDescriptors)
	// one more is open until the oldest has ended
	return max(descriptors-own-int64(listeners*(spareConnections+1)), descriptors/4)
}

// descriptors returns how many files and connections the process may have open.
func descriptors() int64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 1<<30 {
		return 1 << 30 // no limit that matters
	}
	return int64(limit.Cur)
}

// room is the number of further connections that all listeners may have.
type room struct{ left atomic.Int64 }

// listener accepts connections as long as it is open, even if the system lacks a resource for a
// moment.
type listener struct {
	net.Listener
	room   *room
	log    *slog.Logger
	closed chan struct{}
	end    sync.Once

	mu     sync.Mutex
	spare  []*conn   // oldest first
	warned time.Time // time of the last warning that spare ones are used
}

func newListener(l net.Listener, r *room, log *slog.Logger) *listener {
	return &listener{Listener: l, room: r, log: log, closed: make(chan struct{})}
}

// Close ends the listener, and an Accept that pauses.
func (l *listener) Close() error {
	l.end.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// Accept waits for a connection. It fails only if the listener is closed or broken.
func (l *listener) Accept() (net.Conn, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		c, err := l.Listener.Accept()
		if err == nil {
			return l.admit(c), nil
		}
		if !mayPass(err) {
			return nil, err
		}
		if pause == firstPause {
			l.log.Warn("cannot accept a connection, will try again", "address", l.Addr().String(), "error", err)
		}
		select {
		case <-time.After(pause):
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
}

// mayPass reports whether an error of accept concerns one connection, or a resource that is missing
// for the moment.
func mayPass(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED},
		func(one error) bool { return errors.Is(err, one) })
}

// admit counts a connection. If there is no room, the connection replaces the oldest spare one.
func (l *listener) admit(c net.Conn) net.Conn {
	if l.room.left.Add(-1) >= 0 {
		return &conn{Conn: c, leave: func(*conn) { l.room.left.Add(1) }}
	}
	l.room.left.Add(1)
	l.mu.Lock()
	admitted := &conn{Conn: c, leave: l.forget}
	if now := time.Now(); now.Sub(l.warned) > warnEvery {
		l.warned = now
		l.log.Warn("clients hold as many connections as the limit of open files allows: new ones may end soon", "address", l.Addr().String())
	}
	l.spare = append(l.spare, admitted)
	var oldest *conn
	if len(l.spare) > spareConnections {
		oldest = l.spare[0]
	}
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // its client has held it longest without need
	}
	return admitted
}

// forget removes a connection that has ended from the spare ones.
func (l *listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spare = slices.DeleteFunc(l.spare, func(other *conn) bool { return other == c })
}

// conn is a connection that counts until it is closed.
type conn struct {
	net.Conn
	leave func(*conn)
	left  sync.Once
}

// Close closes the connection. It may be called more than once.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.left.Do(func() { c.leave(c) })
	return err
}

// SyscallConn implements a part of syscall.Conn, with which code that waits for a client can check
// that it is still there.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	s, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return s.SyscallConn()
}
