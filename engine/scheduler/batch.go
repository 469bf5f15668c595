package scheduler

import (
	"time"

	"tuner/engine/linked"
)

// batch is a set of requests for one execution.
type batch[T any] struct {
	tickets linked.List[*Ticket[T]]
	place   linked.Place[*batch[T]] // in the list of batches ready for an instance
	size    int                     // rows
	oldest  time.Time               // arrival of the request that came first
	taken   bool                    // taken by an instance
	closed  bool                    // no further request joins it
	// no other batch is merged with it, since the next request in line had another shape
	alone bool
}

func (b *batch[T]) add(t *Ticket[T]) {
	if b.tickets.Len() == 0 || t.item.Enqueued.Before(b.oldest) {
		b.oldest = t.item.Enqueued
	}
	b.tickets.Push(&t.place)
	b.size += t.item.Rows
	t.batch = b
}

// first returns the request that joined first. The batch must not be empty.
func (b *batch[T]) first() *Ticket[T] { return b.tickets.First() }

// fits reports whether the shape of t allows it to join b. All requests of a batch have the same
// shape.
func (b *batch[T]) fits(t *Ticket[T]) bool {
	return b.tickets.Len() == 0 || b.first().item.Shape == t.item.Shape
}

// outlook is the result of a scan of the queue's head.
type outlook[T any] struct {
	pending, rows int        // requests that could join the open batch, and their rows
	best          int        // requests that make up a preferred size; 0: none do
	sendNow       bool       // the batch cannot grow beyond pending
	oldest        time.Time  // arrival of the oldest pending request
	first, last   *Ticket[T] // the pending requests
	batch         *batch[T]  // the open batch at the scan
	size          int        // its rows when the scan began
	changes       int        // changes of the queue until then
}

// scanQueue scans the queue for requests that could join the open batch. It closes the batch if it
// cannot grow. If only the end of the queue has changed since the last scan, it continues where
// that ended, as Triton does with a cursor.
func (s *Scheduler[T]) scanQueue() *outlook[T] {
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

// decide returns how many requests join the open batch now, or how long the first of them may still
// wait for others. It follows DynamicBatchScheduler::GetDynamicBatch:
//
//   - A preferred size that can be reached exactly is taken at once.
//   - A batch that cannot grow, or whose oldest request has waited for Delay, is sent as it is.
//   - Otherwise the batch waits.
//
// A request that arrives while a batch waits for an instance joins it without delay, unless the
// batch has a preferred size.
func (s *Scheduler[T]) decide(now time.Time) (take int, wait time.Duration) {
	b, set := s.open, &s.settings
	o := s.scanQueue()
	if o.pending == 0 {
		return 0, 0 // the open batch has just been closed, and the next one starts
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

// rouses reports whether the arrival of t is a reason to scan the queue. As in Triton's Enqueue, it
// is not while two conditions hold. A batch waits, for others or for an instance. And the queue has
// too few rows for the next preferred size. Requests that are not scanned now are seen when an
// instance takes or ends a batch, or when Delay is over.
func (s *Scheduler[T]) rouses(t *Ticket[T]) bool {
	return s.open == nil || s.open.closed || t.item.Shape != "" || !t.expires.IsZero() || s.queue.rows >= s.awaited
}

// gatherUntil returns until when the idle instances leave the only batch that is ready, since clients
// come back that were just answered. Zero: an instance takes what is ready now.
func (s *Scheduler[T]) gatherUntil(now time.Time) time.Time {
	if !s.settings.gathers || s.idle == 0 || s.ready.Len() != 1 || s.draining {
		return time.Time{}
	}
	b := s.ready.First()
	if b != s.open || b.closed {
		return time.Time{} // it cannot grow, or has a preferred size
	}
	at := now.Sub(s.origin)
	until := s.returns.Wait(b.size+s.queue.rows, s.running, s.settings.largestPreferred(), at)
	if until <= at {
		return time.Time{}
	}
	return s.origin.Add(until)
}

// merge joins waiting batches to b, which an instance takes, as InstanceQueue::Dequeue does. It
// joins the following batches that have waited longer than Delay, as long as they fit. The first
// batch that does not fit can no longer grow.
func (s *Scheduler[T]) merge(b *batch[T], now time.Time) {
	if !s.settings.Dynamic || s.settings.Delay == 0 || b.alone {
		return
	}
	for s.ready.Len() > 0 {
		next := s.ready.First()
		if next.alone || now.Sub(next.oldest) <= s.settings.Delay {
			return
		}
		next.closed = true
		if b.size+next.size > s.settings.MaxBatch || !b.fits(next.first()) {
			return
		}
		s.pick()
		for next.tickets.Len() > 0 {
			b.add(next.tickets.Pop())
		}
		s.retire(next)
	}
}
