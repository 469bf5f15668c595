package sequence

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
	"sync"
	"time"

	"tuner/engine/scheduler"
)

// grace is how long a sequence that comes from the backlog keeps its slot, although it has been idle
// for too long there. Triton looks at such a sequence every 50 ms.
const grace = 50 * time.Millisecond

// Scheduler gives the sequences of one model slots in its instances, and passes their requests on. All
// methods are safe for concurrent use.
type Scheduler[T any] struct {
	settings  Settings
	instances []*instance[T]
	workers   sync.WaitGroup
	wake      scheduler.Wake

	mu         sync.Mutex
	open       map[ID]*sequence[T] // that may get further requests
	free       slots[T]
	backlog    backlog[T]
	deadlines  deadlines[T]
	held       bool       // direct: see Settings.Hold
	unfinished int        // requests that are neither executed nor rejected
	finished   *sync.Cond // none is left while draining
	last       uint64     // identity that was last given to a request without one
	retiring   bool       // see Retire
	draining   bool
	closed     bool
}

// instance is an instance of the model, and its slots.
type instance[T any] struct {
	number  int
	slots   []*slot[T]
	queued  int                              // requests that wait in its slots
	batcher *scheduler.Scheduler[*Ticket[T]] // oldest
	work    *sync.Cond                       // direct: requests have come, or the scheduler has ended
	timer   scheduler.Timer                  // direct, with a delay; nil: none
}

// New starts a scheduler with one goroutine per executor. Close ends it. An executor may be a
// scheduler.Binder.
func New[T any](set Settings, executors []Executor[T]) *Scheduler[T] {
	s := &Scheduler[T]{settings: set, open: map[ID]*sequence[T]{}, held: !set.Oldest && set.Hold > 0}
	s.finished = sync.NewCond(&s.mu)
	s.wake.Timer = set.Timer(s.tick)
	for i, e := range executors {
		in := &instance[T]{number: i, work: sync.NewCond(&s.mu)}
		for k := range max(set.Slots, 1) {
			in.slots = append(in.slots, &slot[T]{in: in, number: k})
			s.free = append(s.free, in.slots[k])
		}
		s.instances = append(s.instances, in)
		if set.Oldest {
			in.batcher = scheduler.New(set.batcher(), []scheduler.Executor[*Ticket[T]]{newBatched(s, e)}, set.Timer)
			continue
		}
		if set.Delay > 0 && set.Utilization > 0 {
			in.timer = set.Timer(func() { s.rouse(in) })
		}
		s.workers.Go(func() { s.serve(in, e) })
	}
	heap.Init(&s.free)
	return s
}

// Close executes the requests that wait, without further delay, and returns when all instances have
// ended. New requests get ErrClosed. It may be called more than once.
func (s *Scheduler[T]) Close() {
	s.mu.Lock()
	s.draining = true
	s.endOpen(time.Now())
	s.letGo()
	for s.unfinished > 0 {
		s.finished.Wait()
	}
	s.closed = true
	for _, in := range s.instances {
		in.work.Signal()
	}
	s.mu.Unlock()
	s.workers.Wait()
	for _, in := range s.instances {
		if in.batcher != nil {
			in.batcher.Close()
		}
		if in.timer != nil {
			in.timer.Close()
		}
	}
	s.wake.Close()
}

// Retire says that most requests go elsewhere from now on. Where a sequence waits for a slot, all open ones end: none
// waits for a slot that an idle one has. What is held is executed.
func (s *Scheduler[T]) Retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retiring = true
	now := time.Now()
	s.yield(now)
	s.letGo()
	s.setTimer(now)
}

// yield ends the open sequences of a scheduler that retires if one waits for a slot.
func (s *Scheduler[T]) yield(now time.Time) {
	if s.retiring && s.backlog.sequences.Len() > 0 {
		s.endOpen(now)
	}
}

// endOpen ends all open sequences.
func (s *Scheduler[T]) endOpen(now time.Time) {
	for _, q := range s.bySlot() {
		s.end(q, now)
	}
}

// letGo has the instances look at their slots, and at what is held.
func (s *Scheduler[T]) letGo() {
	s.held = false
	for _, in := range s.instances {
		if in.batcher != nil {
			in.batcher.Unhold()
		}
		in.work.Signal()
	}
}

// bySlot lists the open sequences: those with a slot in the order in which slots are given, then the
// others. So the slots that they leave go to the same sequences each time.
func (s *Scheduler[T]) bySlot() []*sequence[T] {
	return slices.SortedFunc(maps.Values(s.open), func(a, b *sequence[T]) int {
		switch {
		case a.slot != nil && b.slot != nil:
			return cmp.Or(cmp.Compare(a.slot.number, b.slot.number), cmp.Compare(a.slot.in.number, b.slot.in.number))
		case a.slot != nil:
			return -1
		case b.slot != nil:
			return 1
		}
		return 0
	})
}

// Pending returns the number of requests that wait for an instance.
func (s *Scheduler[T]) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.backlog.requests
	for _, in := range s.instances {
		n += in.queued
		if in.batcher != nil {
			n += in.batcher.Pending()
		}
	}
	return n
}

// Enqueue adds a request and returns at once. The error is ErrNoID, ErrNotStarted or ErrClosed.
func (s *Scheduler[T]) Enqueue(item Item[T]) (*Ticket[T], error) {
	item.Enqueued = time.Now()
	if item.ID == (ID{}) && !s.settings.Iterative {
		return nil, ErrNoID
	}
	t := &Ticket[T]{item: item, owner: s, waits: true, done: make(chan struct{}, 1)}
	t.place.Of = t
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return nil, ErrClosed
	}
	if item.ID == (ID{}) {
		s.last++
		t.item.ID, t.item.Start, t.item.End = ID{Number: s.last}, true, false
		item = t.item
	}
	q := s.open[item.ID]
	if q == nil {
		if !item.Start {
			return nil, ErrNotStarted
		}
		q = s.begin(item.ID)
	}
	t.sequence = q
	q.tickets.Push(&t.place)
	s.unfinished++
	q.idle = item.Enqueued.Add(s.settings.Idle)
	if item.End {
		q.ended = true
		delete(s.open, item.ID)
	}
	if q.slot == nil {
		s.await(q, t)
		s.yield(item.Enqueued)
	} else {
		q.slot.in.queued++
		s.deadlines.set(q, q.idleAfter(time.Time{}))
		s.advance(q.slot, item.Enqueued)
	}
	s.setTimer(item.Enqueued)
	return t, nil
}

// begin gives a new sequence a slot, or puts it into the backlog.
func (s *Scheduler[T]) begin(id ID) *sequence[T] {
	q := &sequence[T]{id: id}
	q.place.Of = q
	s.open[id] = q
	if len(s.free) == 0 {
		s.backlog.sequences.Push(&q.place)
		return q
	}
	q.slot = heap.Pop(&s.free).(*slot[T])
	q.slot.sequence = q
	return q
}

// await counts a request of a sequence in the backlog. The nearest timeout of all its requests is
// that of the sequence.
func (s *Scheduler[T]) await(q *sequence[T], t *Ticket[T]) {
	s.backlog.requests++
	if t.item.Timeout > 0 {
		if expires := t.item.Enqueued.Add(t.item.Timeout); q.due.IsZero() || expires.Before(q.due) {
			s.deadlines.set(q, expires)
		}
	}
	s.unhold()
}

// idleAfter returns when a sequence with a slot ends for lack of requests, but not before a time.
// Zero: it has ended already.
func (q *sequence[T]) idleAfter(earliest time.Time) time.Time {
	switch {
	case q.ended:
		return time.Time{}
	case q.idle.Before(earliest):
		return earliest
	}
	return q.idle
}

// advance passes on the requests of a slot, if it can.
func (s *Scheduler[T]) advance(sl *slot[T], now time.Time) {
	if !s.settings.Oldest {
		s.unhold()
		sl.in.work.Signal()
		return
	}
	q := sl.sequence
	if sl.busy || q == nil || q.tickets.Len() == 0 {
		return
	}
	sl.busy = true // before the slot may pass to another sequence
	t := s.take(sl, now)
	var err error
	t.batched, err = sl.in.batcher.Enqueue(scheduler.Item[*Ticket[T]]{Value: t, Rows: 1, Shape: t.item.Shape, Notifier: t.item.Notifier})
	if err != nil { // it has no limit, and ends after the last request
		panic(err)
	}
	t.done <- struct{}{}
}

// take removes the first request of a slot's sequence. If it is the last one, the slot is released.
func (s *Scheduler[T]) take(sl *slot[T], now time.Time) *Ticket[T] {
	q := sl.sequence
	t := q.tickets.Pop()
	t.slot, t.waits = sl, false
	sl.in.queued--
	if q.ended && q.tickets.Len() == 0 {
		s.release(sl, now)
	}
	return t
}

// release gives the slot of a sequence that has ended to the next one.
func (s *Scheduler[T]) release(sl *slot[T], now time.Time) {
	sl.sequence.slot = nil
	sl.sequence = nil
	if s.backlog.sequences.Len() == 0 {
		heap.Push(&s.free, sl)
		return
	}
	q := s.backlog.sequences.Pop()
	s.backlog.requests -= q.tickets.Len()
	sl.in.queued += q.tickets.Len()
	q.slot, sl.sequence = sl, q
	s.deadlines.set(q, q.idleAfter(now.Add(grace)))
	s.advance(sl, now)
}

// end ends a sequence: no further request joins it.
func (s *Scheduler[T]) end(q *sequence[T], now time.Time) {
	q.ended = true
	if s.open[q.id] == q {
		delete(s.open, q.id)
	}
	if q.slot != nil || q.tickets.Len() == 0 {
		s.deadlines.set(q, time.Time{})
	}
	switch {
	case q.tickets.Len() > 0:
	case q.slot != nil:
		s.release(q.slot, now)
	default:
		q.place.Leave()
	}
}

// endWith ends the sequence that a request has started, which was executed. The requests behind it are
// cancelled, as in Triton.
func (s *Scheduler[T]) endWith(t *Ticket[T], now time.Time) {
	q := t.sequence
	if !t.item.Start || q.slot != t.slot {
		return
	}
	if q.tickets.Len() > 0 {
		s.drop(q, q.tickets.First(), ErrBroken, ErrBroken)
	}
	s.end(q, now)
}

// drop answers the requests of a sequence from t on, which are not executed. cause is t's.
func (s *Scheduler[T]) drop(q *sequence[T], t *Ticket[T], cause, others error) {
	n := 0
	for place := &t.place; place != nil; n++ {
		t, next := place.Of, place.Next()
		place.Leave()
		t.err, t.waits = cause, false
		cause = others
		t.tell()
		place = next
	}
	if q.slot == nil {
		s.backlog.requests -= n
	} else {
		q.slot.in.queued -= n
	}
	s.finish(n)
}

// finish counts requests that have been executed or rejected.
func (s *Scheduler[T]) finish(n int) {
	s.unfinished -= n
	if s.draining && s.unfinished == 0 {
		s.finished.Broadcast()
	}
}

// cancel ends the sequence of a request that waits, and answers the requests from it on.
func (s *Scheduler[T]) cancel(t *Ticket[T], cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.waits {
		return
	}
	now := time.Now()
	s.drop(t.sequence, t, cause, ErrBroken)
	s.end(t.sequence, now)
	s.setTimer(now)
}

// left ends the sequence of a request that has left its batcher without being executed.
func (s *Scheduler[T]) left(t *Ticket[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	t.slot.busy = false
	s.finish(1)
	if q := t.sequence; q.slot == t.slot {
		if q.tickets.Len() > 0 {
			s.drop(q, q.tickets.First(), ErrBroken, ErrBroken)
		}
		s.end(q, now)
	}
	s.advance(t.slot, now)
	s.setTimer(now)
}

// tick ends the sequences whose time is over. Requests in the backlog are rejected.
func (s *Scheduler[T]) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for len(s.deadlines) > 0 && !s.deadlines[0].due.After(now) {
		q := s.deadlines[0]
		if q.slot == nil {
			s.drop(q, q.tickets.First(), ErrExpired, ErrExpired)
		}
		s.end(q, now)
	}
	s.setTimer(now)
}

// setTimer sets the timer to the nearest deadline.
func (s *Scheduler[T]) setTimer(now time.Time) {
	var wake time.Time
	if len(s.deadlines) > 0 {
		wake = s.deadlines[0].due
	}
	s.wake.Set(wake, now)
}
