package scheduler

import "time"

// batch is a set of requests on their way to one execution.
type batch[T any] struct {
	tickets list[*Ticket[T]]
	place   place[*batch[T]] // in the list of batches ready for an instance
	size    int              // rows
	oldest  time.Time        // arrival of the request that came first
	taken   bool             // by an instance
	closed  bool             // no request joins it any more
	alone   bool             // no other batch is merged with it: the next request in line had another shape
}

func (b *batch[T]) add(t *Ticket[T]) {
	if b.tickets.len == 0 || t.item.Enqueued.Before(b.oldest) {
		b.oldest = t.item.Enqueued
	}
	b.tickets.push(&t.place)
	b.size += t.item.Rows
	t.batch = b
}

// first is the request that joined first. There is one.
func (b *batch[T]) first() *Ticket[T] { return b.tickets.first.of }

// fits reports whether t may join b as far as shapes are concerned: all requests of a batch have the same.
func (b *batch[T]) fits(t *Ticket[T]) bool {
	return b.tickets.len == 0 || b.first().item.Shape == t.item.Shape
}

// outlook is what a look at the queue's head finds.
type outlook[T any] struct {
	pending, rows int        // requests that could join the open batch, their rows
	best          int        // requests that make up a preferred size; 0: none do
	sendNow       bool       // the batch cannot grow beyond pending
	oldest        time.Time  // arrival of the oldest pending one
	first, last   *Ticket[T] // of those pending
	batch         *batch[T]  // the open batch, and
	size          int        // its rows when the look began
	changes       int        // of the queue until then
}

// look scans the queue for what the open batch could become, and closes that if it can't grow any more. It goes on where the last
// look ended, as Triton does with a cursor, if nothing has happened since but arrivals at the end of the queue.
func (s *Scheduler[T]) look() *outlook[T] {
	b, set, o := s.open, &s.settings, &s.outlook
	if o.batch != b || o.size != b.size || o.changes != s.queue.changes {
		*o = outlook[T]{batch: b, size: b.size, changes: s.queue.changes}
	}
	o.sendNow = false
	for t := s.queue.next(o.last); t != nil; t = s.queue.next(t) {
		next := t.item.Rows
		if b.size+o.pending > 0 {
			if b.size+o.rows+next > set.largestPreferred() && o.best == 0 {
				o.best, b.closed = o.pending, true
			}
			if b.size+o.rows+next > set.MaxBatch {
				o.sendNow = true
				return o
			}
			if !b.fits(t) || o.first != nil && o.first.item.Shape != t.item.Shape {
				o.sendNow, b.closed, b.alone = true, true, true
				return o
			}
		}
		if o.first == nil {
			o.first = t
		}
		if o.pending == 0 || t.item.Enqueued.Before(o.oldest) {
			o.oldest = t.item.Enqueued
		}
		o.pending++
		o.rows += next
		if set.isPreferred(b.size + o.rows) {
			o.best = o.pending
		}
		o.last = t
	}
	return o
}

// decide says how many requests join the open batch now, or how long the first of them may still wait for company. It
// follows DynamicBatchScheduler::GetDynamicBatch: a preferred size that can be reached exactly is taken at once; a batch
// that cannot grow further, or whose oldest request has waited Delay, is sent as it is; else it waits. What arrives while
// a batch waits for an instance joins that without delay, unless the batch has a preferred size.
func (s *Scheduler[T]) decide(now time.Time) (take int, wait time.Duration) {
	b, set := s.open, &s.settings
	o := s.look()
	if o.pending == 0 {
		return 0, 0 // the open batch has just been closed: the next one starts
	}
	age := now.Sub(o.oldest)
	late := s.draining || set.Delay > 0 && age >= set.Delay
	switch {
	case o.best != 0 && !late:
		b.closed = b.closed || set.Delay == 0
		return o.best, 0
	case o.sendNow || b.size+o.rows >= set.largestPreferred():
		b.closed = true
		return o.pending, 0
	case late || set.Delay == 0:
		return o.pending, 0
	}
	s.awaited = set.nextPreferred(b.size+o.rows) - b.size
	if b.size > 0 && !b.closed && !set.isPreferred(b.size) {
		return o.pending, 0
	}
	return 0, set.Delay - age
}

// rouses reports whether the arrival of t is a reason to look at the queue. As in Triton's Enqueue it is not while a batch
// waits, for company or for an instance, and the queue holds too few rows for the next preferred size. What is not looked
// at is seen when an instance takes a batch or ends one, or when Delay is over.
func (s *Scheduler[T]) rouses(t *Ticket[T]) bool {
	return s.open == nil || s.open.closed || t.item.Shape != "" || !t.expires.IsZero() || s.queue.rows >= s.awaited
}

// merge joins to b, which an instance takes, the batches behind it that have waited longer than Delay, while they fit: what
// InstanceQueue::Dequeue does. The first one that does not fit will not grow either.
func (s *Scheduler[T]) merge(b *batch[T], now time.Time) {
	if !s.settings.Dynamic || s.settings.Delay == 0 || b.alone {
		return
	}
	for s.ready.len > 0 {
		next := s.ready.first.of
		if next.alone || now.Sub(next.oldest) <= s.settings.Delay {
			return
		}
		next.closed = true
		if b.size+next.size > s.settings.MaxBatch || !b.fits(next.first()) {
			return
		}
		s.pick()
		for next.tickets.len > 0 {
			b.add(next.tickets.pop())
		}
		s.retire(next)
	}
}
