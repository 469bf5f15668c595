package load

import (
	"context"
	"sync"
	"time"
)

const (
	firstConnections = 16 // first connections of an open loop
	// connections that stay free for the next requests, or a quarter of the busy ones if that is
	// more
	fewestSpare = 4
)

// openLoop sends by the schedule, whatever the server does. The pacer sends over a free connection.
// A reader per connection receives. If no connection is free, the request waits and is late, and
// more connections are opened. Its latency still counts from the schedule.
type openLoop struct {
	session   *session
	most      int             // largest number of requests due and unanswered
	scheduled *pipe[arrival]  // for the session
	unsent    *pipe[record]   // requests that were due when the load ended, read by the session
	count     int             // requests so far
	grow      chan struct{}   // wakes dialMore
	quiet     chan struct{}   // signals that no request is pending
	readers   *sync.WaitGroup // readers of the current run

	mu      sync.Mutex
	all     []*reader
	idle    []*reader // free readers; the one used last is used next
	queue   []order   // requests that are due while no connection is free
	pending int       // requests due and unanswered: queued or in flight
	dialing int
}

func newOpenLoop(s *session) *openLoop {
	return &openLoop{session: s, most: s.options.MaxInFlight, scheduled: newPipe[arrival](), unsent: newPipe[record](),
		grow: make(chan struct{}, 1), quiet: make(chan struct{}, 1)}
}

// reader receives the answers of one connection. It uses one slot.
type reader struct {
	*client
	orders chan order // at most one: an order that was sent or must be sent
}

// order is a request that is due.
type order struct {
	request int
	ready   time.Duration // instant in the schedule
	sent    bool
}

func (l *openLoop) newReader(number int) *reader {
	return &reader{newClient(l.session, number, 1), make(chan order, 1)}
}

func (l *openLoop) dial(ctx context.Context) error {
	for i := range min(firstConnections, l.most) {
		l.all = append(l.all, l.newReader(i))
	}
	return connectAll(ctx, l.clients())
}

func (l *openLoop) clients() []*client {
	l.mu.Lock()
	defer l.mu.Unlock()
	clients := make([]*client, len(l.all))
	for i, r := range l.all {
		clients[i] = r.client
	}
	return clients
}

func (l *openLoop) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)
}

func (l *openLoop) gather(arrive func(arrival), take func(record)) {
	for a := range l.scheduled.drain() {
		arrive(a)
	}
	for _, c := range l.clients() {
		c.gather(take)
	}
	for r := range l.unsent.drain() {
		take(r)
	}
}

func (l *openLoop) run(ctx context.Context, tickets *tickets) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	l.readers = new(sync.WaitGroup)
	l.idle = nil
	for _, r := range l.all {
		r.orders = make(chan order, 1)
		if r.conn != nil {
			l.idle = append(l.idle, r)
		}
		l.readers.Go(func() { l.read(ctx, r) })
	}
	var sending sync.WaitGroup
	sending.Go(func() { l.dialMore(ctx) })
	sending.Go(func() {
		l.pace(ctx, tickets)
		l.awaitQuiet(ctx)
		stop()
	})
	sending.Wait()
	l.end()
	l.readers.Wait()
}

// awaitQuiet waits until every due request is answered.
func (l *openLoop) awaitQuiet(ctx context.Context) {
	isQuiet := func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.pending == 0
	}
	for !isQuiet() {
		select {
		case <-ctx.Done():
			return
		case <-l.quiet:
		}
	}
}

// end stops the readers and records the requests that were not sent.
func (l *openLoop) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.session.now()
	for _, o := range l.queue {
		l.unsent.append(record{request: o.request, ready: o.ready, sent: now, end: now, outcome: aborted})
	}
	l.pending -= len(l.queue)
	l.queue = nil
	for _, r := range l.all {
		close(r.orders)
	}
}

// pace follows the schedule. The first instant of a run is the time of its call.
func (l *openLoop) pace(ctx context.Context, tickets *tickets) {
	waiter := l.session.newWaiter(l.session.now, l.session.options.Sleeps)
	base := unknown
	for ctx.Err() == nil && tickets.claim() {
		at := l.session.options.Arrivals.Next()
		if base == unknown {
			base = l.session.now() - at
		}
		at += base
		if left := at - l.session.now(); left > coarse && !sleep(ctx, left-coarse/2) {
			return
		}
		waiter.until(at)
		l.arrive(order{request: l.session.options.request(l.count), ready: at})
		l.count++
	}
}

// request returns the number of the request at an instant of the schedule.
func (p *Part) request(instant int) int {
	if len(p.Order) == 0 {
		return instant
	}
	return p.Order[instant%len(p.Order)]
}

// arrive sends a due request, queues it until a connection is free, or drops it.
func (l *openLoop) arrive(o order) {
	l.mu.Lock()
	if l.pending >= l.most {
		l.mu.Unlock()
		l.scheduled.append(arrival{o.ready, true})
		return
	}
	l.pending++
	var r *reader
	if last := len(l.idle) - 1; last >= 0 {
		r, l.idle = l.idle[last], l.idle[:last]
	} else {
		l.queue = append(l.queue, o)
	}
	more := l.missing() > 0
	l.mu.Unlock()
	if r != nil && !l.session.options.Large {
		r.send(0, o.request, o.ready)
		o.sent = true
	}
	if r != nil {
		r.orders <- o
	}
	l.scheduled.append(arrival{o.ready, false})
	if more {
		signal(l.grow)
	}
}

// signal wakes the goroutine that waits for c, now or later.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // a signal is already pending
	}
}

// read receives over one connection until there are no more orders.
func (l *openLoop) read(ctx context.Context, r *reader) {
	free := r.conn == nil // a reader without a connection is not in l.idle
	for {
		if free && !l.serve(ctx, r) {
			return
		}
		o, more := <-r.orders
		if !more {
			return
		}
		l.finish(ctx, r, o)
		free = true
	}
}

// serve sends the queued requests over its connection, then adds the reader to l.idle. It returns
// false if there is no connection and none can be opened.
func (l *openLoop) serve(ctx context.Context, r *reader) bool {
	for {
		if !r.connected(ctx) {
			return false
		}
		o, more := l.dequeue(ctx, r)
		if !more {
			return true
		}
		l.finish(ctx, r, o)
	}
}

// dequeue takes the request that has waited the longest. If no request waits, it adds the reader to
// l.idle.
func (l *openLoop) dequeue(ctx context.Context, r *reader) (order, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 || ctx.Err() != nil {
		l.idle = append(l.idle, r)
		return order{}, false
	}
	o := l.queue[0]
	l.queue = l.queue[1:]
	return o, true
}

// finish sends the request of an order, if it was not sent yet, and receives its answer.
func (l *openLoop) finish(ctx context.Context, r *reader, o order) {
	if !o.sent {
		r.send(0, o.request, o.ready)
	}
	r.receive(ctx)
	l.mu.Lock()
	l.pending--
	quiet := l.pending == 0
	l.mu.Unlock()
	if quiet {
		signal(l.quiet)
	}
}

// missing returns the number of connections to open: one per queued request, and some spare ones.
// The caller holds l.mu.
func (l *openLoop) missing() int {
	busy := len(l.all) - len(l.idle)
	wanted := len(l.queue) + max(fewestSpare, busy/4) - len(l.idle) - l.dialing
	return min(wanted, l.most-len(l.all)-l.dialing, dialsAtOnce-l.dialing)
}

// dialMore opens missing connections, until the context ends.
func (l *openLoop) dialMore(ctx context.Context) {
	var dialling sync.WaitGroup
	defer dialling.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.grow:
		}
		l.mu.Lock()
		n, first := l.missing(), len(l.all)+l.dialing
		l.dialing += max(0, n)
		l.mu.Unlock()
		for i := range n {
			dialling.Go(func() { l.dialOne(ctx, first+i) })
		}
	}
}

// dialOne opens a connection and starts its reader.
func (l *openLoop) dialOne(ctx context.Context, number int) {
	r := l.newReader(number)
	err := r.connect(ctx)
	if err != nil {
		sleep(ctx, dialPause) // pause before the next attempt
	}
	l.mu.Lock()
	l.dialing--
	if err == nil {
		l.all = append(l.all, r)
	}
	more := l.missing() > 0
	l.mu.Unlock()
	if err == nil {
		l.readers.Go(func() {
			if l.serve(ctx, r) {
				l.read(ctx, r)
			}
		})
	}
	if more {
		signal(l.grow)
	}
}
