package sequence

import (
	"runtime"
	"time"

	"tuner/engine/scheduler"
)

// serve is the loop of an instance in the direct strategy.
func (s *Scheduler[T]) serve(in *instance[T], e Executor[T]) {
	if b, ok := e.(scheduler.Binder); ok {
		runtime.LockOSThread() // never unlocked, so that no other goroutine runs on a bound thread
		b.Bind()
	}
	w := worker[T]{Scheduler: s, in: in}
	for w.collect() {
		e.Execute(w.rows)
		w.answer()
	}
}

// worker has the batch of an instance.
type worker[T any] struct {
	*Scheduler[T]
	in      *instance[T]
	rows    []Row[T]
	tickets []*Ticket[T] // of the rows that are not vacant
}

// collect forms the next batch. It blocks until there is one. It returns false when there will be no
// more.
func (w *worker[T]) collect() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.form(time.Now()) {
		if w.closed {
			return false
		}
		w.in.work.Wait()
	}
	return true
}

// form takes the first request of each slot, up to the last slot that has one. The first of them
// decides the shape: a slot with a request of another shape is vacant in this batch.
func (w *worker[T]) form(now time.Time) bool {
	if w.held || w.in.queued == 0 {
		return false
	}
	first, last, ready := -1, 0, 0
	var oldest time.Time
	for i, sl := range w.in.slots {
		if sl.sequence == nil || sl.sequence.tickets.Len() == 0 {
			continue
		}
		t := sl.sequence.tickets.First()
		if first < 0 {
			first = i
		}
		if ready == 0 || t.item.Enqueued.Before(oldest) {
			oldest = t.item.Enqueued
		}
		last = i
		ready++
	}
	if wait := w.delay(ready, now.Sub(oldest)); wait > 0 {
		w.in.timer.Reset(wait)
		return false
	}
	pattern := w.in.slots[first].sequence.tickets.First().item
	for i, sl := range w.in.slots[:last+1] {
		if sl.sequence == nil || sl.sequence.tickets.Len() == 0 || sl.sequence.tickets.First().item.Shape != pattern.Shape {
			w.rows = append(w.rows, Row[T]{Item: pattern, Slot: i, Vacant: true})
			continue
		}
		t := w.take(sl, now)
		w.rows = append(w.rows, Row[T]{Item: t.item, Slot: i})
		w.tickets = append(w.tickets, t)
	}
	w.setTimer(now)
	return true
}

// delay returns how long a batch still waits for requests in more slots.
func (w *worker[T]) delay(ready int, age time.Duration) time.Duration {
	set := &w.settings
	if w.draining || w.in.timer == nil || float64(ready)/float64(max(set.MaxBatch, 1)) >= set.Utilization {
		return 0
	}
	return set.Delay - age
}

// answer wakes the goroutines that wait for the requests of the batch.
func (w *worker[T]) answer() {
	w.mu.Lock()
	w.finish(len(w.tickets))
	if w.settings.Iterative {
		now := time.Now()
		for _, t := range w.tickets {
			w.endWith(t, now)
		}
		w.setTimer(now)
	}
	w.mu.Unlock()
	for _, t := range w.tickets {
		t.tell()
	}
	clear(w.tickets)
	clear(w.rows)
	w.tickets, w.rows = w.tickets[:0], w.rows[:0]
}

// rouse makes an instance look at its slots again.
func (s *Scheduler[T]) rouse(in *instance[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in.work.Signal()
}

// unhold lets the instances work once enough requests wait.
func (s *Scheduler[T]) unhold() {
	if !s.held || s.backlog.requests < s.settings.HoldBacklog {
		return
	}
	n := 0
	for _, in := range s.instances {
		n += in.queued
	}
	if n < s.settings.Hold {
		return
	}
	s.held = false
	for _, in := range s.instances {
		in.work.Signal()
	}
}
