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

// What client.inFlight holds when it is not the instant at which the request in flight was sent.
const (
	idle    int64 = -1
	expired int64 = -2 // the request in flight has taken too long: the connection is interrupted
)

// client has one connection, over which it sends one request after the other. It replaces a connection that broke, or that the server
// had closed while it was not in use.
type client struct {
	number  int
	session *session
	records *pipe[record] // for the session
	waiting time.Duration // the session's: when the request in flight was sent, unknown for none

	mu   sync.Mutex // held to replace the connection, and to interrupt it
	conn Conn       // nil: none

	inFlight atomic.Int64
}

func newClient(s *session, number int) *client {
	c := &client{number: number, session: s, records: newPipe[record](), waiting: unknown}
	c.inFlight.Store(idle)
	return c
}

// order is a request that is to be sent, or has been.
type order struct {
	request int
	ready   time.Duration // as in record
	sent    time.Duration // unknown: not yet
	failure error         // of sending
}

// send sends a request over the connection, which there must be.
func (c *client) send(o order) order {
	o.sent = c.session.now()
	c.inFlight.Store(int64(o.sent))
	o.failure = c.conn.Send(o.request)
	return o
}

// receive waits for the answer to what was sent, and records how it went. It returns when the client was free again. What was sent over
// a connection that the server had closed is sent once more; its latency goes on counting.
func (c *client) receive(ctx context.Context, o order) (outcome, time.Duration) {
	r := record{request: o.request, ready: o.ready, sent: o.sent}
	earlier, free, failure := c.await(&r, o.failure)
	if isUnanswered(failure) && c.reconnect(ctx) {
		c.session.resent.Add(1)
		earlier, free, failure = c.await(&r, c.conn.Send(o.request))
	}
	if failure != nil || r.responses == 0 {
		r.end = free
	}
	late := c.inFlight.Swap(idle) == expired
	switch {
	case late:
		r.outcome, failure = timedOut, errTimeout
	case failure != nil && c.session.aborted.Load():
		r.outcome = aborted
	case failure != nil:
		r.outcome = failed
	}
	if failure != nil || earlier != nil {
		r.more = &details{failure, earlier}
	}
	c.records.append(r)
	if late || c.conn != nil && c.conn.Broken() {
		c.disconnect()
	}
	return r.outcome, free
}

// await waits for the responses to what was sent, unless that failed. free is when the last one came, also a null one, or the failure;
// earlier are those before the last, where they are wanted.
func (c *client) await(r *record, failure error) (earlier []time.Duration, free time.Duration, err error) {
	if failure != nil {
		return nil, c.session.now(), failure
	}
	for {
		final, null, err := c.conn.Receive()
		free = c.session.now()
		if err != nil {
			return earlier, free, err
		}
		if !null {
			if r.responses > 0 && c.session.options.Sink != nil {
				earlier = append(earlier, r.end)
			}
			r.responses++
			r.end = free
		}
		if final {
			return earlier, free, nil
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

// reconnect replaces the connection. It is false when none is to be had, and when the request in flight has taken too long meanwhile.
func (c *client) reconnect(ctx context.Context) bool {
	c.disconnect()
	return c.connect(ctx) == nil && c.inFlight.Load() != expired
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
	c.conn = conn
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

// interrupt ends the request in flight.
func (c *client) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.conn.Interrupt()
	}
}

// expire ends the request that was sent at an instant, unless it has just ended by itself. That is decided under the lock, so that no
// other connection is interrupted.
func (c *client) expire(sent time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil && c.inFlight.CompareAndSwap(int64(sent), expired) {
		c.conn.Interrupt()
	}
}

// gather yields what was recorded since the last time, and notes what is in flight after that.
func (c *client) gather(yield func(record)) {
	waiting := c.inFlight.Load() // before the records: what ends meanwhile is in them
	c.waiting = unknown
	if waiting >= 0 {
		c.waiting = time.Duration(waiting)
	}
	for r := range c.records.drain() {
		if r.sent >= c.waiting {
			c.waiting = unknown
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

// lost is the error of a server that has had no connection for lostAfter and refuses new ones.
func (l *link) lost(now time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open > 0 || l.cause == nil || now < l.since+lostAfter {
		return nil
	}
	return &LostError{l.cause}
}
