package sequence

import (
	"time"

	"tuner/engine/scheduler"
)

// batched runs the batches that the batcher of an instance has formed, in the oldest strategy.
type batched[T any] struct {
	owner    *Scheduler[T]
	executor Executor[T]
	rows     []Row[T]
}

// bound is batched with an executor that needs its own thread.
type bound[T any] struct {
	*batched[T]
	scheduler.Binder
}

func newBatched[T any](s *Scheduler[T], e Executor[T]) scheduler.Executor[*Ticket[T]] {
	b := &batched[T]{owner: s, executor: e}
	if binder, ok := e.(scheduler.Binder); ok {
		return bound[T]{b, binder}
	}
	return b
}

// Execute runs a batch. Then the next request of each of its sequences may go to the batcher.
func (b *batched[T]) Execute(items []scheduler.Item[*Ticket[T]]) {
	for _, it := range items {
		b.rows = append(b.rows, Row[T]{Item: it.Value.item, Slot: it.Value.slot.number})
	}
	b.executor.Execute(b.rows)
	clear(b.rows)
	b.rows = b.rows[:0]
	b.owner.complete(items)
}

// complete frees the slots of requests that have been executed.
func (s *Scheduler[T]) complete(items []scheduler.Item[*Ticket[T]]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, it := range items {
		it.Value.slot.busy = false
		if s.settings.Iterative {
			s.endWith(it.Value, now)
		}
		s.advance(it.Value.slot, now)
	}
	s.finish(len(items))
	s.setTimer(now)
}
