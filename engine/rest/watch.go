package rest

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// untilWatched is how long a request waits before its connection is watched. Most are answered sooner, and cost nothing but setting a
// timer. So do those of a client that closes its side as soon as it has sent its request.
const untilWatched = 20 * time.Millisecond

// watch is the context of a request that waits for its answer: it ends when the client has gone. An HTTP server is not told
// that while it does not read; see hangups. The zero value is ready; it is used for one request after the other.
type watch struct {
	hangups *hangups

	mu     sync.Mutex
	conn   net.Conn        // nil: none waits
	raw    syscall.RawConn // of the watched connection
	number uint64          // of the watched connection; 0: it is not watched
	timer  *time.Timer
	done   chan struct{}
	isGone bool
}

// begin starts to watch a connection. A client that closes its side for writing counts as gone.
func (w *watch) begin(h *hangups, conn net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hangups, w.conn = h, conn
	if w.done == nil || w.isGone {
		w.done, w.isGone = make(chan struct{}), false
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(untilWatched, w.look)
		return
	}
	w.timer.Reset(untilWatched)
}

// rawConn is the descriptor of a connection; nil: it has none, as TLS.
func rawConn(conn net.Conn) syscall.RawConn {
	s, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// end stops watching.
func (w *watch) end() {
	w.timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.number != 0 {
		w.hangups.remove(w.raw, w.number)
	}
	w.conn, w.raw, w.number = nil, nil, 0
}

// look has the connection watched from now on.
func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == nil || w.number != 0 {
		return
	}
	if w.raw = rawConn(w.conn); w.raw != nil {
		w.number = w.hangups.add(w.raw, w)
	}
}

// hangUp ends the request, if the number is still that of its connection.
func (w *watch) hangUp(number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.number == number && !w.isGone {
		w.isGone = true
		close(w.done)
	}
}

// Deadline is part of context.Context.
func (w *watch) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done is part of context.Context.
func (w *watch) Done() <-chan struct{} { return w.done }

// Err is part of context.Context.
func (w *watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isGone {
		return context.Canceled
	}
	return nil
}

// Value is part of context.Context.
func (w *watch) Value(any) any { return nil }
