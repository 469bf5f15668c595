package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A client that is refused waits before it tries again. The first pause is short, and each further
// one is twice as long.
const (
	shortestPause = time.Millisecond
	longestPause  = 100 * time.Millisecond
)

// Special values of slot.inFlight. Other values are the instant at which the request in flight was
// sent.
const (
	idle    int64 = -1
	expired int64 = -2 // the request in flight has timed out, and the client must end it
	handled int64 = -3 // the request is over, and the client is about to send the next
)

// client has one connection. Each slot of the connection has one request after the other. The
// client replaces a connection that broke, or that the server closed while it was idle.
type client struct {
	number  int
	session *session
	slots   []slot

	open   int          // requests that were sent and are not over
	lost   int          // open requests that must be sent again
	over   []completion // requests that ended in the latest receive
	ending bool         // the connection takes no further request

	mu   sync.Mutex // held to replace the connection, and to interrupt it
	conn Conn       // nil: no connection
}

// slot holds one request in flight.
type slot struct {
	inFlight atomic.Int64
	records  *pipe[record] // read by the session
	// used by the session: when the request in flight was sent; unknown: none is in flight
	waiting time.Duration

	// The client uses these.
	open    bool   // a request is not over
	current record // the record of that request
	earlier []time.Duration
	lost    error // reason why it must be sent again; nil: it need not
	again   bool  // it was sent again
}

// completion is a request that is over.
type completion struct {
	slot    int
	outcome outcome
	// when the slot was free again: with the last response (also a null one), or with the failure
	at time.Duration
}

// newClient makes a client with the given number of slots.
func newClient(s *session, number, slots int) *client {
	c := &client{number: number, session: s}
	c.divide(slots)
	return c
}

// divide makes the slots. It must come before the first send.
func (c *client) divide(slots int) {
	c.slots = make([]slot, slots)
	for i := range c.slots {
		c.slots[i].records, c.slots[i].waiting = newPipe[record](), unknown
		c.slots[i].inFlight.Store(idle)
	}
}

// send sends a request in a free slot. The client must have a connection. ready is as in record.
func (c *client) send(i, request int, ready time.Duration) {
	s := &c.slots[i]
	s.current = record{request: request, ready: ready, sent: c.session.now()}
	s.open, s.earlier, s.again = true, nil, false
	c.open++
	s.inFlight.Store(int64(s.current.sent))
	c.conn.Send(i, request)
}

// receive waits until at least one request is over, and records the requests that ended. A request
// whose connection the server had closed is sent once more, as soon as no other request is on that
// connection. Its latency still counts from the first sending. The result is valid until the next
// call.
func (c *client) receive(ctx context.Context) []completion {
	c.over = c.over[:0]
	c.sweep()
	for len(c.over) == 0 {
		if c.open == c.lost {
			c.resend(ctx)
			continue
		}
		c.handleResponse(c.conn.Receive())
	}
	if c.ending = c.isBroken(); c.ending && c.open == 0 {
		c.disconnect()
	}
	return c.over
}

// sweep ends the requests that have timed out while others continue on the connection. It marks
// free slots as idle.
func (c *client) sweep() {
	for i := range c.slots {
		switch s := &c.slots[i]; {
		case !s.open:
			s.inFlight.Store(idle)
		case s.inFlight.Load() == expired:
			c.finish(i, errTimeout, c.session.now())
		}
	}
}

// handleResponse handles one result of the connection's Receive.
func (c *client) handleResponse(i int, final, null bool, err error) {
	now := c.session.now()
	s := &c.slots[i]
	switch {
	case !s.open: // it has timed out and is over
		return
	case isUnanswered(err) && !s.again:
		s.lost = err
		c.lost++
		return
	case err == nil && !null:
		if s.current.responses > 0 && c.session.options.Sink != nil {
			s.earlier = append(s.earlier, s.current.end)
		}
		s.current.responses++
		s.current.end = now
	}
	if final || err != nil {
		c.finish(i, err, now)
	}
}

// finish records the end of the request in a slot. failure is the reason of a failure, or nil.
func (c *client) finish(i int, failure error, at time.Duration) {
	s := &c.slots[i]
	r := &s.current
	if failure != nil || r.responses == 0 {
		r.end = at
	}
	switch late := s.inFlight.Swap(handled) == expired; {
	case late:
		r.outcome, failure = timedOut, errTimeout
	case failure != nil && c.session.aborted.Load():
		r.outcome = aborted
	case failure != nil:
		r.outcome = failed
	}
	if failure != nil || s.earlier != nil {
		r.more = &details{failure, s.earlier}
	}
	s.records.append(*r)
	if s.lost != nil {
		s.lost = nil
		c.lost--
	}
	s.open = false
	c.open--
	c.over = append(c.over, completion{i, r.outcome, at})
}

// resend replaces the connection that the server had closed, and sends its requests once more. A
// request fails if there is no new connection, or if it has timed out meanwhile.
func (c *client) resend(ctx context.Context) {
	c.disconnect()
	connected := c.connect(ctx) == nil
	for i := range c.slots {
		switch s := &c.slots[i]; {
		case s.lost == nil:
		case !connected || s.inFlight.Load() == expired:
			c.finish(i, s.lost, c.session.now())
		default:
			s.lost, s.again = nil, true
			c.lost--
			c.session.resent.Add(1)
			c.conn.Send(i, s.current.request)
		}
	}
}

// isUnanswered reports whether an error allows the request to be sent once more (see Conn).
func isUnanswered(err error) bool {
	if err == nil { // the usual case
		return false
	}
	var e interface{ Unanswered() bool }
	return errors.As(err, &e) && e.Unanswered()
}

var errTimeout = errors.New("no answer within the request's timeout")

// errAborted ends an attempt to connect when the run is over.
var errAborted = errors.New("the run is over")

// connect opens the connection. One that takes fewer requests than the client has slots is refused: a
// server may allow each connection another number.
func (c *client) connect(ctx context.Context) error {
	conn, err := c.session.options.Dial(ctx, c.number)
	if err == nil && conn.Slots() < len(c.slots) {
		err = errors.Join(fmt.Errorf("it takes %d requests in flight, and needs to take %d as the first one", conn.Slots(), len(c.slots)), conn.Close())
	}
	if err != nil {
		c.session.link.refused(err)
		return fmt.Errorf("cannot open connection %d: %w", c.number+1, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session.aborted.Load() {
		return errors.Join(errAborted, conn.Close())
	}
	c.conn, c.ending = conn, false
	c.session.link.opened()
	return nil
}

// connected opens the connection if it is closed. It tries until the context ends, and reports
// whether it succeeded.
func (c *client) connected(ctx context.Context) bool {
	for pause := shortestPause; c.conn == nil; pause = min(2*pause, longestPause) {
		if ctx.Err() != nil {
			return false
		}
		if c.connect(ctx) != nil {
			sleep(ctx, pause)
		}
	}
	return true
}

// isBroken reports whether there is no connection that takes a further request. The caller asks
// under the lock, since expire may be about to interrupt the connection.
func (c *client) isBroken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn == nil || c.conn.Broken()
}

// disconnect closes the connection, if there is one.
func (c *client) disconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		return
	}
	_ = c.conn.Close() // the connection is no longer in use, so the error does not matter
	c.conn = nil
	c.session.link.closed(c.session.now())
}

// interrupt ends the requests in flight.
func (c *client) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.conn.Interrupt()
	}
}

// expire ends the requests that were sent before an instant and are still in flight. If there are
// other requests on the connection, it only marks them: the client ends them when it receives the
// next answer. Otherwise it interrupts the connection. It decides under the lock, so that it cannot
// interrupt a newer connection.
func (c *client) expire(before time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		return
	}
	late, live := false, false
	for i := range c.slots {
		inFlight := &c.slots[i].inFlight
		state := inFlight.Load()
		if state >= 0 && state < int64(before) && inFlight.CompareAndSwap(state, expired) {
			state = expired
		}
		late = late || state == expired
		live = live || state >= 0 || state == handled
	}
	if late && !live {
		c.conn.Interrupt()
	}
}

// gather yields the records since the last call. Then it notes the requests that are still in
// flight.
func (c *client) gather(yield func(record)) {
	for i := range c.slots {
		c.slots[i].gather(yield)
	}
}

func (s *slot) gather(yield func(record)) {
	// read before the records, so that a request which ends meanwhile is among them
	waiting := s.inFlight.Load()
	s.waiting = unknown
	if waiting >= 0 {
		s.waiting = time.Duration(waiting)
	}
	for r := range s.records.drain() {
		if r.sent >= s.waiting {
			s.waiting = unknown
		}
		yield(r)
	}
}

// sleep waits for the time. It returns false if the context ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// link counts the connections. It knows since when there are none.
type link struct {
	mu    sync.Mutex
	open  int
	since time.Duration // when the last connection was closed
	cause error         // error of the latest attempt, if none has succeeded since
}

func (l *link) opened() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.cause = l.open+1, nil
}

func (l *link) closed(at time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.since = l.open-1, at
}

func (l *link) refused(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cause = err
}

// lost returns the error of a server that has refused new connections for lostAfter and has no
// connection, or only unused ones.
func (l *link) lost(now time.Duration, isUsed bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open > 0 && isUsed || l.cause == nil || now < l.since+lostAfter {
		return nil
	}
	return &LostError{l.cause}
}
