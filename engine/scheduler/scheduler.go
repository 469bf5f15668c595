package scheduler

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Why a request was not executed.
var (
	ErrQueueFull = errors.New("the queue is full")
	ErrExpired   = errors.New("the request waited longer than its timeout")
	ErrClosed    = errors.New("the scheduler is closed")
)

// Executor runs batches on one instance of a model. Execute is called by one goroutine at a time, always on the same
// operating-system thread; it blocks until the batch is done and leaves the outcome in the items. It must not keep them.
type Executor[T any] interface {
	Execute(items []Item[T])
}

// Item is a request as the scheduler sees it.
type Item[T any] struct {
	Value    T
	Rows     int           // its batch size, at least 1
	Shape    string        // requests with different shapes never share a batch
	Priority uint64        // 1 is the highest; 0: the default
	Timeout  time.Duration // asks to be rejected after waiting that long; 0: no wish

	Enqueued time.Time // set by the scheduler
}

// Ticket stands for a request that is queued or being executed.
type Ticket[T any] struct {
	item     Item[T]
	owner    *Scheduler[T]
	level    uint64
	enqueued time.Time
	expires  time.Time // zero: never
	postpone bool
	batch    *batch[T]
	err      error
	answered bool // err is final; guarded by the scheduler's lock
	done     chan struct{}
}

// Wait blocks until the request was executed (nil), or rejected, or ctx ended while it was queued. A request that is being
// executed is always waited for, because the execution uses its memory.
func (t *Ticket[T]) Wait(ctx context.Context) error {
	select {
	case <-t.done:
	case <-ctx.Done():
		t.owner.cancel(t, context.Cause(ctx))
		<-t.done
	}
	return t.err
}

// Scheduler queues and batches the requests of one model and feeds its instances. All methods are safe for concurrent use.
type Scheduler[T any] struct {
	instances int
	workers   sync.WaitGroup

	mu       sync.Mutex
	settings Settings
	queue    *queue[T]
	open     *batch[T]   // the batch that is being formed, or the last one formed
	ready    []*batch[T] // formed and not yet taken, in order
	idle     int         // instances that wait for work
	work     *sync.Cond  // a batch is ready, or draining began
	timer    *time.Timer
	draining bool
	ordered  []*Ticket[T] // with PreserveOrdering: not yet answered, in order of arrival
}

// New starts a scheduler with one thread per executor. Close ends it.
func New[T any](set Settings, executors []Executor[T]) *Scheduler[T] {
	s := &Scheduler[T]{instances: len(executors), settings: set.normalised()}
	s.queue = newQueue[T](s.settings.Levels)
	s.work = sync.NewCond(&s.mu)
	s.timer = time.AfterFunc(time.Hour, s.tick)
	s.timer.Stop()
	for _, e := range executors {
		s.workers.Go(func() { s.serve(e) })
	}
	return s
}

// Close executes what is queued, without further delay, and returns when all instances have ended. New requests get
// ErrClosed. It may be called more than once.
func (s *Scheduler[T]) Close() {
	s.mu.Lock()
	s.draining = true
	s.pump(time.Now())
	s.work.Broadcast()
	s.mu.Unlock()
	s.workers.Wait()
	s.timer.Stop()
}

// Reconfigure changes the settings for the queued and all later requests; batches that are formed already stay as they are.
func (s *Scheduler[T]) Reconfigure(set Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.queue
	s.settings = set.normalised()
	s.queue = newQueue[T](s.settings.Levels)
	s.open = nil
	old.scan(func(t *Ticket[T]) bool {
		s.place(t)
		if s.settings.Dynamic {
			s.queue.push(t)
		} else {
			s.dispatch(t)
		}
		return true
	})
	s.pump(time.Now())
}

// Pending is the number of requests that wait for an instance.
func (s *Scheduler[T]) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.queue.len
	for _, b := range s.ready {
		n += len(b.tickets)
	}
	return n
}

// Enqueue adds a request and returns at once. The error is ErrQueueFull or ErrClosed.
func (s *Scheduler[T]) Enqueue(item Item[T]) (*Ticket[T], error) {
	now := time.Now()
	item.Enqueued = now
	item.Rows = max(item.Rows, 1)
	t := &Ticket[T]{item: item, owner: s, enqueued: now, done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return nil, ErrClosed
	}
	s.place(t)
	if limit := s.settings.policy(t.level).MaxQueue; s.settings.Dynamic && limit != 0 {
		s.reject(s.queue.expire(now))
		if s.queue.count(t.level) >= limit {
			return nil, ErrQueueFull
		}
	}
	if s.settings.PreserveOrdering {
		s.ordered = append(s.ordered, t)
	}
	if !s.settings.Dynamic {
		s.dispatch(t)
		return t, nil
	}
	s.queue.push(t)
	s.pump(now)
	return t, nil
}

// place gives t its priority level and what its policy says of timeouts.
func (s *Scheduler[T]) place(t *Ticket[T]) {
	t.level = s.settings.level(t.item.Priority)
	p := s.settings.policy(t.level)
	t.postpone, t.expires = p.Postpone, time.Time{}
	if d := p.timeout(t.item.Timeout); d != 0 {
		t.expires = t.enqueued.Add(d)
	}
}

// dispatch makes a batch of t alone.
func (s *Scheduler[T]) dispatch(t *Ticket[T]) {
	b := &batch[T]{closed: true}
	b.add(t)
	s.offer(b)
}

// offer puts b at the end of the list from which the instances take.
func (s *Scheduler[T]) offer(b *batch[T]) {
	b.queued = true
	s.ready = append(s.ready, b)
	s.work.Signal()
}

// pump advances the state machine: it forms batches while there is room for them, and sets the timer for what has to wait.
func (s *Scheduler[T]) pump(now time.Time) {
	s.reject(s.queue.expire(now))
	var wake time.Time
	for s.queue.len > 0 && s.hasSlot() {
		if s.open == nil || s.open.closed || s.open.taken {
			s.open = &batch[T]{}
		}
		d := s.decide(now)
		if d.wait > 0 {
			wake = now.Add(d.wait)
			break
		}
		s.queue.take(d.take, s.open.add)
		if !s.open.queued && len(s.open.tickets) > 0 {
			s.offer(s.open)
		}
	}
	if n := s.queue.nearest; !n.IsZero() && s.queue.len > 0 && (wake.IsZero() || n.Before(wake)) {
		wake = n
	}
	if !wake.IsZero() {
		s.timer.Reset(wake.Sub(now))
	}
}

// hasSlot reports whether another batch may be formed. Without priorities and queue policies two batches per instance are
// prepared ahead; with them a batch is formed only for an idle instance, so that they apply as late as possible.
func (s *Scheduler[T]) hasSlot() bool {
	if s.settings.disablePrefetching {
		return s.idle > len(s.ready)
	}
	return len(s.ready) < 2*s.instances
}

func (s *Scheduler[T]) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pump(time.Now())
}

// serve is the life of an instance.
func (s *Scheduler[T]) serve(e Executor[T]) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var items []Item[T]
	for {
		b := s.next()
		if b == nil {
			return
		}
		items = items[:0]
		for _, t := range b.tickets {
			items = append(items, t.item)
		}
		e.Execute(items)
		clear(items)
		s.finish(b)
	}
}

// next blocks until there is a batch for an idle instance; nil means that there will be none any more.
func (s *Scheduler[T]) next() *batch[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle++
	for s.pump(time.Now()); len(s.ready) == 0; s.pump(time.Now()) {
		if s.draining {
			s.idle--
			return nil
		}
		s.work.Wait()
	}
	s.idle--
	b := s.ready[0]
	s.ready[0] = nil
	s.ready = s.ready[1:]
	b.taken = true
	now := time.Now()
	s.merge(b, now)
	s.pump(now) // a slot became free
	return b
}

// finish answers the requests of an executed batch.
func (s *Scheduler[T]) finish(b *batch[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range b.tickets {
		s.answer(t, nil)
	}
}

// reject answers requests whose time is over.
func (s *Scheduler[T]) reject(tickets []*Ticket[T]) {
	for _, t := range tickets {
		s.answer(t, ErrExpired)
	}
}

// answer makes the outcome of t known, behind those of all earlier requests if order is to be preserved.
func (s *Scheduler[T]) answer(t *Ticket[T], err error) {
	t.err, t.answered = err, true
	if !slices.Contains(s.ordered, t) { // order does not matter, or did not when it came
		close(t.done)
	}
	for len(s.ordered) > 0 && s.ordered[0].answered {
		close(s.ordered[0].done)
		s.ordered = s.ordered[1:]
	}
}

// cancel takes a request that is not yet being executed out of the queue.
func (s *Scheduler[T]) cancel(t *Ticket[T], cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.answered || t.batch != nil && t.batch.taken {
		return
	}
	if b := t.batch; b == nil {
		s.queue.remove(t)
	} else {
		b.tickets = slices.DeleteFunc(b.tickets, func(x *Ticket[T]) bool { return x == t })
		b.size -= t.item.Rows
		if len(b.tickets) == 0 {
			s.ready = slices.DeleteFunc(s.ready, func(x *batch[T]) bool { return x == b })
			b.queued = false
			b.closed = true
		}
	}
	s.ordered = slices.DeleteFunc(s.ordered, func(x *Ticket[T]) bool { return x == t }) // nobody waits for its turn
	s.answer(t, cause)
	s.pump(time.Now())
}
