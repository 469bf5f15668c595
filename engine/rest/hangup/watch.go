// Package hangup notices clients that close their connection while a request of theirs waits. A
// server that does not read cannot see this itself.
//
// It stands below the HTTP front end, and knows no HTTP: a request's context is a Watch, and one
// List has the watched connections of all.
package hangup

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// untilWatched is the time for which a request waits before its connection is watched. Most
// requests are answered sooner, and cost only the setting of a timer. This includes clients that
// close their side right after they have sent their request.
const untilWatched = 20 * time.Millisecond

// Watch is the context of a request that waits for its answer. It ends when the client has gone, see
// List. The zero value is ready. It is used for one request after the other.
type Watch struct {
	list *List

	mu     sync.Mutex
	conn   net.Conn        // nil: no request waits
	raw    syscall.RawConn // descriptor of the watched connection
	number uint64          // number of the watched connection; 0: it is not watched
	timer  *time.Timer
	done   chan struct{}
	isGone bool
}

// Begin starts to watch a connection. A client that closes its side for writing counts as gone.
func (w *Watch) Begin(h *List, conn net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list, w.conn = h, conn
	if w.done == nil || w.isGone {
		w.done, w.isGone = make(chan struct{}), false
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(untilWatched, w.look)
		return
	}
	w.timer.Reset(untilWatched)
}

// rawConn returns the descriptor of a connection. nil: it has none, as with TLS.
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

// End stops watching.
func (w *Watch) End() {
	w.timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.number != 0 {
		w.list.remove(w.raw, w.number)
	}
	w.conn, w.raw, w.number = nil, nil, 0
}

// look watches the connection from now on.
func (w *Watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == nil || w.number != 0 {
		return
	}
	if w.raw = rawConn(w.conn); w.raw != nil {
		w.number = w.list.add(w.raw, w)
	}
}

// hangUp ends the request, if its connection still has that number.
func (w *Watch) hangUp(number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.number == number && !w.isGone {
		w.isGone = true
		close(w.done)
	}
}

// Deadline implements context.Context.
func (w *Watch) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (w *Watch) Done() <-chan struct{} { return w.done }

// Err implements context.Context.
func (w *Watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isGone {
		return context.Canceled
	}
	return nil
}

// Value implements context.Context.
func (w *Watch) Value(any) any { return nil }
