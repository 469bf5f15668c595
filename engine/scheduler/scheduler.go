package scheduler

import (
	"sync"
	"time"

	"tuner/engine/gathering"
	"tuner/engine/linked"
)

// Executor runs batches on one instance of a model. Only one goroutine calls Execute. It blocks
// until the batch is done, and stores the outcome in the items. It must not keep them.
type Executor[T any] interface {
	Execute(items []Item[T])
}

// Scheduler queues and batches the requests of one model and passes batches to its instances. All
// methods are safe for concurrent use.
type Scheduler[T any] struct {
	instances int
	workers   sync.WaitGroup
	tickets   sync.Pool // of *Ticket[T]

	mu       sync.Mutex
	settings Settings
	queue    *queue[T]
	// the batch that is being formed, or the last one formed; nil once it is taken
	open    *batch[T]
	outlook outlook[T] // of the open batch
	// rows in the queue from which on a scan is useful while the open batch waits
	awaited  int
	ready    linked.List[*batch[T]] // formed and not yet taken, in order
	formed   int                    // number of requests in them
	idle     int                    // instances that wait for work
	due      int                    // ready batches for which no instance has been woken
	running  int                    // rows in the instances
	work     *sync.Cond             // a batch is ready, or draining began
	wake     Wake
	hold     int // see Settings; 0 once that many requests were queued
	draining bool
	returns  gathering.Rule // with instants since origin
	origin   time.Time
	// with PreserveOrdering: requests without an answer, in the order in which they joined batches
	ordered linked.List[*Ticket[T]]
	spare   []*batch[T] // for reuse
}

// New starts a scheduler with one goroutine per executor, and a timer for requests that wait. Close
// ends it.
func New[T any](set Settings, executors []Executor[T], timer func(call func()) Timer) *Scheduler[T] {
	s := &Scheduler[T]{instances: len(executors), settings: set.normalised(), hold: set.Hold}
	s.returns, s.origin = gathering.New(len(executors)), time.Now()
	s.queue = newQueue[T](s.settings.Levels)
	s.work = sync.NewCond(&s.mu)
	s.wake.Timer = timer(s.tick)
	for _, e := range executors {
		s.workers.Go(func() { s.serve(e) })
	}
	return s
}

// Close executes the queued requests without further delay, and returns when all instances have
// ended. New requests get ErrClosed. It may be called more than once.
func (s *Scheduler[T]) Close() {
	s.mu.Lock()
	s.draining = true
	s.pump(time.Now())
	s.work.Broadcast()
	s.mu.Unlock()
	s.workers.Wait()
	s.wake.Close()
}

// Unhold forms batches of the requests that are held so far, and of later ones: no more will come.
// See Settings.Hold.
func (s *Scheduler[T]) Unhold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = 0
	s.pump(time.Now())
}

// Reconfigure changes the settings for the queued and all later requests. Batches that are already
// formed stay as they are.
func (s *Scheduler[T]) Reconfigure(set Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.queue
	s.settings = set.normalised()
	s.queue = newQueue[T](s.settings.Levels)
	s.open, s.outlook = nil, outlook[T]{}
	old.takeFirst(old.len, func(t *Ticket[T]) {
		s.setLevel(t)
		if s.settings.Dynamic {
			s.queue.push(t)
		} else {
			s.dispatch(t)
		}
	})
	s.pump(time.Now())
}

// Pending returns the number of requests that wait for an instance.
func (s *Scheduler[T]) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.len + s.formed
}

// Enqueue adds a request and returns at once. The error is ErrQueueFull or ErrClosed.
func (s *Scheduler[T]) Enqueue(item Item[T]) (*Ticket[T], error) {
	item.Enqueued = time.Now()
	item.Rows = max(item.Rows, 1)
	t := s.newTicket(item)
	s.mu.Lock()
	err := s.admit(t)
	s.mu.Unlock()
	if err != nil {
		s.recycle(t)
		return nil, err
	}
	return t, nil
}

// admit queues t, unless there is no room.
func (s *Scheduler[T]) admit(t *Ticket[T]) error {
	if s.draining {
		return ErrClosed
	}
	s.setLevel(t)
	if !s.settings.Dynamic {
		s.dispatch(t)
		return nil
	}
	now := t.item.Enqueued
	if limit := s.settings.policy(t.level).MaxQueue; limit != 0 {
		s.queue.expire(now, s.reject)
		if s.queue.count(t.level) >= limit {
			return ErrQueueFull
		}
	}
	s.queue.push(t)
	if s.settings.gathers {
		s.returns.Arrive(t.item.Rows, now.Sub(s.origin))
	}
	if s.rouses(t) {
		s.pump(now)
	}
	return nil
}

// setLevel sets t's priority level, and its deadline by the policy of that level.
func (s *Scheduler[T]) setLevel(t *Ticket[T]) {
	t.level = s.settings.level(t.item.Priority)
	p := s.settings.policy(t.level)
	t.postpone, t.expires = p.Postpone, time.Time{}
	if d := p.timeout(t.item.Timeout); d != 0 {
		t.expires = t.item.Enqueued.Add(d)
	}
}

// dispatch makes a batch of t alone.
func (s *Scheduler[T]) dispatch(t *Ticket[T]) {
	b := s.newBatch()
	b.closed, b.alone = true, true
	b.add(t)
	s.formed++
	s.ready.Push(&b.place)
	s.work.Signal()
}

// join moves t to the open batch.
func (s *Scheduler[T]) join(t *Ticket[T]) {
	s.open.add(t)
	s.formed++
	if s.settings.PreserveOrdering {
		s.ordered.Push(&t.turn)
	}
}

// pick removes the first batch from the list from which the instances take.
func (s *Scheduler[T]) pick() *batch[T] {
	b := s.ready.Pop()
	s.formed -= b.tickets.Len()
	return b
}

// pump advances the state machine. It forms batches while there is room for them, and sets the
// timer for waiting requests.
func (s *Scheduler[T]) pump(now time.Time) {
	if s.queue.len < s.hold && !s.draining {
		return // as in Triton, no request expires meanwhile
	}
	s.hold = 0
	s.queue.expire(now, s.reject)
	var wake time.Time
	for s.queue.len > 0 && s.hasSlot() {
		if s.open == nil || s.open.closed {
			s.open, s.awaited = s.newBatch(), 0
		}
		take, wait := s.decide(now)
		if wait > 0 {
			wake = now.Add(wait)
			break
		}
		s.queue.takeFirst(take, s.join)
		if s.open.place.In() == nil && take > 0 {
			s.ready.Push(&s.open.place)
			s.due++
		}
	}
	if s.queue.len == 0 && s.open != nil && s.open.size == 0 {
		// the waiting requests are gone, and so is the timer: the next arrival counts again
		s.awaited = 0
	}
	if n := s.queue.nearest(); !n.IsZero() && (wake.IsZero() || n.Before(wake)) {
		wake = n
	}
	if until := s.gatherUntil(now); !until.IsZero() {
		wake = until // where batches gather, nothing else waits for an instant
	} else {
		s.rouseInstances()
	}
	s.wake.Set(wake, now)
}

// rouseInstances wakes an instance for each batch that has become ready.
func (s *Scheduler[T]) rouseInstances() {
	for s.due = min(s.due, s.ready.Len()); s.due > 0; s.due-- {
		s.work.Signal()
	}
}

// hasSlot reports whether a batch may be formed or grown. Without priorities and queue policies,
// two batches per instance are prepared ahead. With them, a batch is formed only for an idle
// instance, so that they apply as late as possible.
func (s *Scheduler[T]) hasSlot() bool {
	if s.settings.disablePrefetching {
		return s.idle > s.ready.Len()
	}
	return s.ready.Len() < 2*s.instances
}

func (s *Scheduler[T]) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pump(time.Now())
}

// newBatch returns an empty batch.
func (s *Scheduler[T]) newBatch() *batch[T] {
	n := len(s.spare)
	if n == 0 {
		b := &batch[T]{}
		b.place.Of = b
		return b
	}
	b := s.spare[n-1]
	s.spare = s.spare[:n-1]
	return b
}

// retire keeps b for reuse. b must be empty and in no list.
func (s *Scheduler[T]) retire(b *batch[T]) {
	if s.open == b {
		s.open = nil
	}
	*b = batch[T]{place: b.place}
	s.spare = append(s.spare, b)
}

// reject answers a request whose timeout is over. The request has joined no batch, so no other
// waits for its turn.
func (s *Scheduler[T]) reject(t *Ticket[T]) {
	t.err, t.answered = ErrExpired, true
	t.tell()
}

// settle sets err as the outcome of t. It appends to heard the tickets that may be answered now. If
// order is preserved, a ticket must wait for all earlier ones.
func (s *Scheduler[T]) settle(t *Ticket[T], err error, heard []*Ticket[T]) []*Ticket[T] {
	t.err, t.answered = err, true
	if t.turn.In() == nil {
		heard = append(heard, t)
	}
	for s.ordered.Len() > 0 && s.ordered.First().answered {
		heard = append(heard, s.ordered.Pop())
	}
	return heard
}

// announce wakes the goroutines that wait for settled tickets.
func announce[T any](tickets []*Ticket[T]) {
	for _, t := range tickets {
		t.tell()
	}
}

// cancel removes a request from the queue, unless it is being executed.
func (s *Scheduler[T]) cancel(t *Ticket[T], cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.answered || t.batch != nil && t.batch.taken {
		return
	}
	if b := t.batch; b == nil {
		s.queue.remove(t)
	} else {
		t.place.Leave()
		b.size -= t.item.Rows
		if b.place.In() != nil {
			s.formed--
		}
		if b.tickets.Len() == 0 {
			b.place.Leave()
			s.retire(b)
		}
	}
	t.turn.Leave() // nobody waits for it
	announce(s.settle(t, cause, nil))
	s.pump(time.Now())
}
