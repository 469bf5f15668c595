package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A client that is refused waits before it tries again: briefly at first, then twice as long each time.
const (
	shortestPause = time.Millisecond
	longestPause  = 100 * time.Millisecond
)

// What slot.inFlight holds when it is not the instant at which the request in flight was sent.
const (
	idle    int64 = -1
	expired int64 = -2 // the request in flight has taken too long: the client is to end it
	handled int64 = -3 // the request is over, and the client about to send the next
)

// client has one connection, and in each of its slots one request after the other. It replaces a connection that broke, or that the
// server had closed while it was not in use.
type client struct {
	number  int
	session *session
	slots   []slot

	open   int          // requests that were sent and are not over
	lost   int          // those of them that are to be sent once more
	over   []completion // by the latest receive
	ending bool         // the connection takes no further request

	mu   sync.Mutex // held to replace the connection, and to interrupt it
	conn Conn       // nil: none
}

// slot is the place of a request in flight.
type slot struct {
	inFlight atomic.Int64
	records  *pipe[record] // for the session
	waiting  time.Duration // the session's: when the request in flight was sent, unknown for none

	// The client's.
	open    bool   // there is a request that is not over
	current record // of that request
	earlier []time.Duration
	lost    error // why it is to be sent once more; nil: it is not
	again   bool  // it was
}

// completion is a request that is over.
type completion struct {
	slot    int
	outcome outcome
	at      time.Duration // when the slot was free again: with the last response, also a null one, or the failure
}

// newClient makes a client with some slots.
func newClient(s *session, number, slots int) *client {
	c := &client{number: number, session: s}
	c.divide(slots)
	return c
}

// divide makes the slots, before anything is sent.
func (c *client) divide(slots int) {
	c.slots = make([]slot, slots)
	for i := range c.slots {
		c.slots[i].records, c.slots[i].waiting = newPipe[record](), unknown
		c.slots[i].inFlight.Store(idle)
	}
}

// send sends a request in a slot that is free, over the connection, which there must be. ready is as in record.
func (c *client) send(i, request int, ready time.Duration) {
	s := &c.slots[i]
	s.current = record{request: request, ready: ready, sent: c.session.now()}
	s.open, s.earlier, s.again = true, nil, false
	c.open++
	s.inFlight.Store(int64(s.current.sent))
	c.conn.Send(i, request)
}

// receive waits until requests that were sent are over, one at least, and records how they went. What was sent over a connection that
// the server had closed is sent once more, when nothing else is on that connection; its latency goes on counting. The result is valid
// until the next call.
func (c *client) receive(ctx context.Context) []completion {
	c.over = c.over[:0]
	c.sweep()
	for len(c.over) == 0 {
		if c.open == c.lost {
			c.resend(ctx)
			continue
		}
		c.take(c.conn.Receive())
	}
	if c.ending = c.isBroken(); c.ending && c.open == 0 {
		c.disconnect()
	}
	return c.over
}

// sweep ends the requests that have taken too long while others go on over the connection, and notes which slots are not used now.
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

// take takes what the connection received.
func (c *client) take(i int, final, null bool, err error) {
	now := c.session.now()
	s := &c.slots[i]
	switch {
	case !s.open: // it has taken too long, and is over
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

// finish records that the request in a slot is over since an instant; failure says why it did not go well.
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

// resend sends once more what met a connection that the server had closed, over a new one. When none is to be had, or the request has
// taken too long meanwhile, it has failed.
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

// isUnanswered reports whether an error says of a request that it may be sent once more (see Conn).
func isUnanswered(err error) bool {
	if err == nil { // as a rule
		return false
	}
	var e interface{ Unanswered() bool }
	return errors.As(err, &e) && e.Unanswered()
}

var errTimeout = errors.New("no answer within the request's timeout")

// errAborted ends an attempt to connect when the run is over.
var errAborted = errors.New("the run is over")

// connect makes the connection.
func (c *client) connect(ctx context.Context) error {
	conn, err := c.session.options.Dial(ctx, c.number)
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

// connected sees to it that there is a connection: it tries until the context ends, and reports whether it succeeded.
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

// isBroken reports whether there is no connection that takes a further request. It is asked under the lock, since expire may be about
// to interrupt the connection.
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
	_ = c.conn.Close() // nothing was to come over it any more
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

// expire ends the requests that were sent before an instant and are still in flight. Where there are others on the connection, the client
// does it as soon as one of them is answered; else the connection is interrupted. That is decided under the lock, so that it is no
// other connection.
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

// gather yields what was recorded since the last time, and notes what is in flight after that.
func (c *client) gather(yield func(record)) {
	for i := range c.slots {
		c.slots[i].gather(yield)
	}
}

func (s *slot) gather(yield func(record)) {
	waiting := s.inFlight.Load() // before the records: what ends meanwhile is in them
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

// sleep waits for the time, and reports false when the context ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// link counts the connections, and knows since when there are none.
type link struct {
	mu    sync.Mutex
	open  int
	since time.Duration // when the last one was closed
	cause error         // why the latest attempt failed, if none has succeeded since
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

// lost is the error of a server that has refused new connections for lostAfter, and has none, or none that is used.
func (l *link) lost(now time.Duration, isUsed bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open > 0 && isUsed || l.cause == nil || now < l.since+lostAfter {
		return nil
	}
	return &LostError{l.cause}
}
