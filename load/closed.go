package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// loop makes the load of a session: a closed loop or an open one.
type loop interface {
	// dial opens the connections to begin with.
	dial(ctx context.Context) error
	// run sends until the context ends or there are no tickets left, and returns when all that was sent is answered. It is called
	// again only after it has returned.
	run(ctx context.Context, tickets *tickets)
	// clients lists all that there are so far, and waiting tells how many requests are due and not sent.
	clients() []*client
	waiting() int
	// gather hands over the instants of the schedule that passed and the requests that ended since the last time.
	gather(arrive func(arrival), take func(record))
}

// tickets bound how many requests are sent; nil does not.
type tickets struct{ left atomic.Int64 }

func newTickets(n int) *tickets {
	t := new(tickets)
	t.left.Store(int64(n))
	return t
}

func (t *tickets) take() bool { return t == nil || t.left.Add(-1) >= 0 }

// closedLoop keeps a number of requests in flight: each of its workers sends, waits for the answer, and sends the next.
type closedLoop struct {
	workers []*worker
}

func newClosedLoop(s *session) *closedLoop {
	l := new(closedLoop)
	for i := range s.options.Load.Concurrency {
		l.workers = append(l.workers, &worker{client: newClient(s, i), next: i, stride: s.options.Load.Concurrency})
	}
	return l
}

func (l *closedLoop) dial(ctx context.Context) error { return connectAll(ctx, l.clients()) }

func (l *closedLoop) run(ctx context.Context, tickets *tickets) {
	var busy sync.WaitGroup
	for _, w := range l.workers {
		busy.Go(func() { w.loop(ctx, tickets) })
	}
	busy.Wait()
}

// ramp has the first n workers send two requests each.
func (l *closedLoop) ramp(ctx context.Context, n int) {
	var busy sync.WaitGroup
	for _, w := range l.workers[:min(n, len(l.workers))] {
		busy.Go(func() { w.loop(ctx, newTickets(2)) })
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

// worker is one client of a closed loop.
type worker struct {
	*client
	next, stride int // number of the next request, and the step to the one after it
}

// loop sends as long as there are tickets and the context goes on. A connection that was lost costs the request that was on it, and
// no other.
func (w *worker) loop(ctx context.Context, tickets *tickets) {
	ready, pause := unknown, shortestPause
	for ctx.Err() == nil && w.connected(ctx) && tickets.take() {
		how, free := w.receive(ctx, w.send(order{request: w.next, ready: ready}))
		w.next += w.stride
		ready = free
		if how == completed {
			pause = shortestPause
			continue
		}
		if !sleep(ctx, pause) {
			return
		}
		ready, pause = unknown, min(2*pause, longestPause)
	}
}

const (
	dialsAtOnce = 64 // some servers queue 128 connections at most
	dialRetries = 3
	dialPause   = 100 * time.Millisecond
)

// connectAll connects clients, several at once. A refusal is tried again, since a server's queue may be full for a moment.
func connectAll(ctx context.Context, clients []*client) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var dialling sync.WaitGroup
	var connected atomic.Int64
	free := make(chan struct{}, dialsAtOnce)
	for _, c := range clients {
		free <- struct{}{}
		dialling.Go(func() {
			defer func() { <-free }()
			if err := c.connectPatiently(ctx); err != nil {
				cancel(err) // the first counts
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
