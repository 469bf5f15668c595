package sequence

import (
	"container/heap"
	"context"
	"time"

	"tuner/engine/linked"
	"tuner/engine/scheduler"
)

// Ticket stands for a request that is queued or being executed.
type Ticket[T any] struct {
	item     Item[T]
	owner    *Scheduler[T]
	sequence *sequence[T]
	slot     *slot[T]                      // where it runs; nil while it waits
	place    linked.Place[*Ticket[T]]      // in its sequence
	batched  *scheduler.Ticket[*Ticket[T]] // in the batcher of its instance (oldest)
	err      error
	waits    bool          // it may still leave; guarded by the scheduler's lock
	done     chan struct{} // receives once: it is answered, or in the batcher, which tells the outcome
}

// Wait blocks until the request was executed (nil) or rejected, or ctx ended while it waited. It
// always waits for a request that is being executed, since the execution uses its memory. Wait must
// be called exactly once.
func (t *Ticket[T]) Wait(ctx context.Context) error {
	select {
	case <-t.done:
	case <-ctx.Done():
		t.owner.cancel(t, context.Cause(ctx))
		<-t.done
	}
	if t.batched == nil {
		return t.err
	}
	err := t.batched.Wait(ctx)
	if err != nil {
		t.owner.left(t)
	}
	return err
}

// Cancel takes the request, and those behind it in its sequence, out of the queue, unless it is being
// executed. Wait must not have been called.
func (t *Ticket[T]) Cancel(cause error) {
	t.owner.cancel(t, cause)
	t.owner.mu.Lock()
	batched := t.batched
	t.owner.mu.Unlock()
	if batched != nil {
		batched.Cancel(cause)
	}
}

// tell wakes who waits for a request that has its outcome.
func (t *Ticket[T]) tell() {
	t.done <- struct{}{}
	if n := t.item.Notifier; n != nil {
		n.Notify()
	}
}

// sequence is a sequence that has requests, or a slot.
type sequence[T any] struct {
	id      ID
	tickets linked.List[*Ticket[T]]    // the requests that wait, in order
	slot    *slot[T]                   // nil: it is in the backlog
	ended   bool                       // no further request joins it
	idle    time.Time                  // when it has had no request for too long
	due     time.Time                  // when the timer looks at it; zero: it does not
	rank    int                        // among the deadlines, from 1; 0: none
	place   linked.Place[*sequence[T]] // in the backlog
}

// backlog lists the sequences that wait for a slot, in the order of their arrival.
type backlog[T any] struct {
	sequences linked.List[*sequence[T]]
	requests  int // of all of them
}

// slot is a place for a sequence in an instance.
type slot[T any] struct {
	in       *instance[T]
	number   int
	sequence *sequence[T] // nil: it is free
	busy     bool         // oldest: a request of it is in the batcher or runs
}

// slots is a heap of free slots: those with the lowest number first, over all instances, as in
// Triton. So the batches of the direct strategy have few vacant rows.
type slots[T any] []*slot[T]

// Len implements heap.Interface.
func (h slots[T]) Len() int { return len(h) }

// Less implements heap.Interface.
func (h slots[T]) Less(i, k int) bool {
	if h[i].number != h[k].number {
		return h[i].number < h[k].number
	}
	return h[i].in.number < h[k].in.number
}

// Swap implements heap.Interface.
func (h slots[T]) Swap(i, k int) { h[i], h[k] = h[k], h[i] }

// Push implements heap.Interface.
func (h *slots[T]) Push(s any) { *h = append(*h, s.(*slot[T])) }

// Pop implements heap.Interface.
func (h *slots[T]) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return s
}

// deadlines is a heap of the sequences that are due, the nearest first.
type deadlines[T any] []*sequence[T]

// set changes when the timer looks at a sequence. Zero: never.
func (h *deadlines[T]) set(q *sequence[T], due time.Time) {
	q.due = due
	switch {
	case due.IsZero() && q.rank > 0:
		heap.Remove(h, q.rank-1)
	case due.IsZero():
	case q.rank > 0:
		heap.Fix(h, q.rank-1)
	default:
		heap.Push(h, q)
	}
}

// Len implements heap.Interface.
func (h deadlines[T]) Len() int { return len(h) }

// Less implements heap.Interface.
func (h deadlines[T]) Less(i, k int) bool { return h[i].due.Before(h[k].due) }

// Swap implements heap.Interface.
func (h deadlines[T]) Swap(i, k int) {
	h[i], h[k] = h[k], h[i]
	h[i].rank, h[k].rank = i+1, k+1
}

// Push implements heap.Interface.
func (h *deadlines[T]) Push(q any) {
	*h = append(*h, q.(*sequence[T]))
	(*h)[len(*h)-1].rank = len(*h)
}

// Pop implements heap.Interface.
func (h *deadlines[T]) Pop() any {
	last := len(*h) - 1
	q := (*h)[last]
	(*h)[last] = nil
	*h, q.rank = (*h)[:last], 0
	return q
}
