package rest

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// When a connection is looked at while its request waits.
const (
	firstLook = 20 * time.Millisecond
	nextLook  = 50 * time.Millisecond
)

// watch is the context of a request that waits for its answer: it ends when the client has gone. An HTTP server is not told
// that while it does not read, so the connection is looked at from time to time; a request that is answered sooner than
// firstLook costs nothing but setting a timer. The zero value is ready; it is used for one request after the other.
type watch struct {
	mu    sync.Mutex
	conn  net.Conn // nil: none waits
	timer *time.Timer
	done  chan struct{}
	gone  bool
}

// begin starts to watch a connection. A client that closes its side for writing counts as gone.
func (w *watch) begin(conn net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = conn
	if w.done == nil || w.gone {
		w.done, w.gone = make(chan struct{}), false
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(firstLook, w.look)
		return
	}
	w.timer.Reset(firstLook)
}

// end stops watching.
func (w *watch) end() {
	w.timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = nil
}

func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.conn == nil || w.gone:
	case hungUp(w.conn):
		w.gone = true
		close(w.done)
	default:
		w.timer.Reset(nextLook)
	}
}

// hungUp reports whether the other side has closed a connection. It reads nothing and never blocks.
func hungUp(conn net.Conn) bool {
	s, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil { // of TLS, for instance
		return false
	}
	var n int
	var failed error
	if err := raw.Control(func(fd uintptr) {
		n, _, failed = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	}); err != nil {
		return true
	}
	switch {
	case failed == nil:
		return n == 0
	case errors.Is(failed, syscall.EAGAIN), errors.Is(failed, syscall.EINTR):
		return false
	}
	return true
}

// Deadline is part of context.Context.
func (w *watch) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done is part of context.Context.
func (w *watch) Done() <-chan struct{} { return w.done }

// Err is part of context.Context.
func (w *watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return context.Canceled
	}
	return nil
}

// Value is part of context.Context.
func (w *watch) Value(any) any { return nil }
