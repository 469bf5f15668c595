package load

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// loop makes the load of a session: a closed loop or an open one.
type loop interface {
	// dial opens the first connections.
	dial(ctx context.Context) error
	// run sends requests until the context ends or no tickets are left. It returns when all
	// requests that were sent are answered. It may be called again after it has returned.
	run(ctx context.Context, tickets *tickets)
	// clients lists all clients so far. waiting returns the number of requests that are due and not
	// sent.
	clients() []*client
	waiting() int
	// gather passes on the instants of the schedule that passed, and the requests that ended, since
	// the last call.
	gather(arrive func(arrival), take func(record))
}

// tickets bound the number of requests that are sent. nil: no bound.
type tickets struct{ left atomic.Int64 }

func newTickets(n int) *tickets {
	t := new(tickets)
	t.left.Store(int64(n))
	return t
}

func (t *tickets) claim() bool { return t == nil || t.left.Add(-1) >= 0 }

// closedLoop keeps the same number of requests in flight. Each worker sends, waits for answers, and sends
// the next requests.
type closedLoop struct {
	session *session
	workers []*worker
}

// dial opens the connections. The first connection tells how many requests share one. The requests
// are dealt to the connections in turn.
func (l *closedLoop) dial(ctx context.Context) error {
	first := newClient(l.session, 0, 0)
	if err := first.connectPatiently(ctx); err != nil {
		return err
	}
	concurrency := l.session.options.Load.Concurrency
	connections := (concurrency-1)/first.conn.Slots() + 1
	for i := range connections {
		c, slots := first, dealt(concurrency, i, connections)
		if i > 0 {
			c = newClient(l.session, i, slots)
		} else {
			c.divide(slots)
		}
		l.workers = append(l.workers, newWorker(c, concurrency, connections))
	}
	return connectAll(ctx, l.clients())
}

// dealt returns how many of n requests in flight a connection has, when the requests are dealt to
// the connections in turn.
func dealt(n, connection, connections int) int {
	return (n - connection + connections - 1) / connections
}

func (l *closedLoop) run(ctx context.Context, tickets *tickets) {
	var busy sync.WaitGroup
	for _, w := range l.workers {
		busy.Go(func() { w.loop(ctx, tickets, w.turns) })
	}
	busy.Wait()
}

// ramp keeps n requests in flight until it has sent 2·n.
func (l *closedLoop) ramp(ctx context.Context, n int) {
	n = min(n, l.session.options.Load.Concurrency)
	var busy sync.WaitGroup
	for i, w := range l.workers {
		if slots := dealt(n, i, len(l.workers)); slots > 0 {
			busy.Go(func() { w.loop(ctx, newTickets(2*slots), w.turns[:slots]) })
		}
	}
	busy.Wait()
}

func (l *closedLoop) clients() []*client {
	clients := make([]*client, len(l.workers))
	for i, w := range l.workers {
		clients[i] = w.client
	}
	return clients
}

func (l *closedLoop) waiting() int { return 0 }

func (l *closedLoop) gather(_ func(arrival), take func(record)) {
	for _, w := range l.workers {
		w.gather(take)
	}
}

// worker is one client of a closed loop, in one goroutine. It takes all answers that have arrived,
// and sends the next request for each.
type worker struct {
	*client
	turns  []turn // by slot
	stride int    // difference of numbers between a slot's request and its next
}

// turn is the next request of a slot in a closed loop.
type turn struct {
	next  int           // number of the request
	ready time.Duration // when it could be sent: at the previous answer, or unknown
	from  time.Duration // earliest sending after a failure; 0: the previous request did not fail
	pause time.Duration // pause after a failure
}

func newWorker(c *client, concurrency, connections int) *worker {
	w := &worker{client: c, turns: make([]turn, len(c.slots)), stride: concurrency}
	for i := range w.turns {
		w.turns[i].next = c.number + i*connections
	}
	return w
}

// loop sends in the first slots, one per turn, as long as there are tickets and the context lives,
// and receives the answers. If a connection is lost, only the requests on it fail.
func (w *worker) loop(ctx context.Context, tickets *tickets, turns []turn) {
	for i := range turns {
		turns[i].ready, turns[i].from, turns[i].pause = unknown, 0, shortestPause
	}
	for more := true; ; {
		more = more && w.fill(ctx, tickets, turns)
		switch {
		case w.open > 0:
			for _, e := range w.receive(ctx) {
				turns[e.slot].end(e)
			}
		case !more || !w.rest(ctx, turns):
			return
		}
	}
}

// fill sends in the free slots. It returns false when nothing more is to be sent.
func (w *worker) fill(ctx context.Context, tickets *tickets, turns []turn) bool {
	for i := range turns {
		t := &turns[i]
		switch {
		case w.slots[i].open || t.from > 0 && w.session.now() < t.from:
		case w.ending && w.open > 0: // requests on the connection end first
			return true
		// the ticket comes first: without one no connection is needed
		case ctx.Err() != nil || !tickets.claim() || !w.connected(ctx):
			return false
		default:
			w.send(i, t.next, t.ready)
			t.next += w.stride
		}
	}
	return true
}

// rest waits until one of the slots may be used again, if all have failed. It returns false if the
// context ended before.
func (w *worker) rest(ctx context.Context, turns []turn) bool {
	first := slices.MinFunc(turns, func(a, b turn) int { return cmp.Compare(a.from, b.from) })
	return sleep(ctx, first.from-w.session.now())
}

// end notes the result of the slot's request. After a failure the slot pauses.
func (t *turn) end(e completion) {
	if e.outcome == completed {
		t.ready, t.from, t.pause = e.at, 0, shortestPause
		return
	}
	t.ready, t.from, t.pause = unknown, e.at+t.pause, min(2*t.pause, longestPause)
}

const (
	dialsAtOnce = 64 // some servers queue at most 128 connections
	dialRetries = 3
	dialPause   = 100 * time.Millisecond
)

// connectAll connects the clients that have no connection, several at once. It tries again after a
// refusal, since a server's queue may be full for a moment.
func connectAll(ctx context.Context, clients []*client) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var dialling sync.WaitGroup
	var connected atomic.Int64
	free := make(chan struct{}, dialsAtOnce)
	for _, c := range clients {
		if c.conn != nil {
			connected.Add(1)
			continue
		}
		free <- struct{}{}
		dialling.Go(func() {
			defer func() { <-free }()
			if err := c.connectPatiently(ctx); err != nil {
				cancel(err) // the first error counts
				return
			}
			connected.Add(1)
		})
	}
	dialling.Wait()
	if n := int(connected.Load()); n < len(clients) {
		return fmt.Errorf("%w (%d of %d were opened)", context.Cause(ctx), n, len(clients))
	}
	return nil
}

func (c *client) connectPatiently(ctx context.Context) error {
	for retries := 0; ; retries++ {
		err := c.connect(ctx)
		if err == nil || retries == dialRetries || !sleep(ctx, dialPause) {
			return err
		}
	}
}
