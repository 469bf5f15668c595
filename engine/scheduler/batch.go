package scheduler

import "time"

// batch is a set of requests on their way to one execution. It is open, that is it may still grow, until it is closed or
// an instance takes it.
type batch[T any] struct {
	tickets []*Ticket[T]
	size    int // rows
	closed  bool
	queued  bool // in the list of batches ready for an instance
	taken   bool
}

func (b *batch[T]) add(t *Ticket[T]) {
	b.tickets = append(b.tickets, t)
	b.size += t.item.Rows
	t.batch = b
}

// fits reports whether t may join b as far as shapes are concerned: all requests of a batch have the same.
func (b *batch[T]) fits(t *Ticket[T]) bool {
	return len(b.tickets) == 0 || b.tickets[0].item.Shape == t.item.Shape
}

// decision is what to do with the head of the queue.
type decision struct {
	take int           // requests to move to the open batch
	wait time.Duration // > 0: nothing yet, look again after this time at the latest
}

// decide looks at the queue from its head and decides how many requests join the open batch now. It closes the batch when
// that can't grow any more. It follows Triton's rules: a preferred size that can be reached exactly is taken at once; a
// batch that cannot grow further, or whose oldest request has waited Delay, is sent as it is; else it waits.
func (s *Scheduler[T]) decide(now time.Time) decision {
	b, set := s.open, &s.settings
	var (
		pending, rows int // scanned requests, their rows
		best          int // requests that make up a preferred size
		sendNow       bool
		first, oldest *Ticket[T]
	)
	s.queue.scan(func(t *Ticket[T]) bool {
		next := t.item.Rows
		if b.size+pending > 0 {
			if b.size+rows+next > set.largestPreferred() && best == 0 {
				best, b.closed = pending, true
			}
			if b.size+rows+next > set.MaxBatch {
				sendNow = true
				return false
			}
			if !b.fits(t) || first != nil && first.item.Shape != t.item.Shape {
				sendNow, b.closed = true, true
				return false
			}
		}
		if first == nil {
			first = t
		}
		if oldest == nil || t.enqueued.Before(oldest.enqueued) {
			oldest = t
		}
		pending++
		rows += next
		if set.isPreferred(b.size + rows) {
			best = pending
		}
		return true
	})
	if pending == 0 {
		return decision{} // the open batch has just been closed: the next one starts
	}
	age := now.Sub(oldest.enqueued)
	late := s.draining || set.Delay > 0 && age >= set.Delay
	switch {
	case best != 0 && !late:
		b.closed = b.closed || set.Delay == 0
		return decision{take: best}
	case sendNow || b.size+rows >= set.largestPreferred():
		b.closed = true
		return decision{take: pending}
	case late || set.Delay == 0:
		return decision{take: pending}
	}
	return decision{wait: set.Delay - age}
}

// merge joins to b, which an instance takes, the open batches behind it that have waited longer than Delay, while they fit.
func (s *Scheduler[T]) merge(b *batch[T], now time.Time) {
	for s.settings.Dynamic && s.settings.Delay > 0 && !b.closed && len(s.ready) > 0 {
		next := s.ready[0]
		if next.closed || len(next.tickets) == 0 || now.Sub(next.tickets[0].enqueued) <= s.settings.Delay ||
			b.size+next.size > s.settings.MaxBatch || !b.fits(next.tickets[0]) {
			return
		}
		next.taken = true
		for _, t := range next.tickets {
			b.add(t)
		}
		s.ready = s.ready[1:]
	}
}
