package scheduler

import (
	"context"
	"errors"
	"time"

	"tuner/engine/linked"
)

// Reasons why a request was not executed.
var (
	ErrQueueFull = errors.New("the queue is full")
	ErrExpired   = errors.New("the request waited longer than its timeout")
	ErrClosed    = errors.New("the scheduler is closed")
)

// Item is the scheduler's view of a request.
type Item[T any] struct {
	Value T
	Rows  int // batch size, at least 1
	// requests with different shapes never share a batch; "": the model has only one shape
	Shape    string
	Priority uint64        // 1 is the highest; 0: the default
	Timeout  time.Duration // largest time in the queue that the request asks for; 0: no wish
	// hears of the outcome, for a caller who waits for several requests; nil: nobody
	Notifier Notifier

	Enqueued time.Time // set by the scheduler
}

// Notifier hears that a request has its outcome, so that Wait does not block. Notify is called once,
// perhaps under a lock of the scheduler: it must neither block nor call the scheduler.
type Notifier interface{ Notify() }

// Ticket stands for a request that is queued or being executed. After Wait it is reused for another
// request.
type Ticket[T any] struct {
	item     Item[T]
	owner    *Scheduler[T]
	level    uint64
	expires  time.Time // zero: never
	postpone bool
	arrival  uint64                   // its number, in the order of arrival
	deadline int                      // place among the deadlines of the queue, from 1; 0: none
	place    linked.Place[*Ticket[T]] // in the queue, or in its batch
	turn     linked.Place[*Ticket[T]] // in the scheduler's list of answers, if order is preserved
	batch    *batch[T]
	err      error
	answered bool          // err is final; guarded by the scheduler's lock
	done     chan struct{} // receives once, when err may be read; never blocks the sender
}

// Wait blocks until the request was executed (nil) or rejected, or ctx ended while it was queued.
// It always waits for a request that is being executed, since the execution uses its memory. Wait
// must be called exactly once: it frees the ticket.
func (t *Ticket[T]) Wait(ctx context.Context) error {
	select {
	case <-t.done:
	case <-ctx.Done():
		t.owner.cancel(t, context.Cause(ctx))
		<-t.done
	}
	err := t.err
	t.owner.recycle(t)
	return err
}

// Cancel takes the request out of the queue, unless it is being executed. Wait must not have been
// called.
func (t *Ticket[T]) Cancel(cause error) { t.owner.cancel(t, cause) }

// tell wakes who waits for the request. The ticket may be reused from then on.
func (t *Ticket[T]) tell() {
	n := t.item.Notifier
	t.done <- struct{}{}
	if n != nil {
		n.Notify()
	}
}

// newTicket returns a ticket for item.
func (s *Scheduler[T]) newTicket(item Item[T]) *Ticket[T] {
	t, ok := s.tickets.Get().(*Ticket[T])
	if !ok {
		t = &Ticket[T]{owner: s, done: make(chan struct{}, 1)}
	}
	t.item = item
	t.place.Of, t.turn.Of = t, t
	return t
}

// recycle keeps t for reuse. No reference to it may be left.
func (s *Scheduler[T]) recycle(t *Ticket[T]) {
	*t = Ticket[T]{owner: s, done: t.done}
	s.tickets.Put(t)
}
