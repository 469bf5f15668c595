package scheduler

import (
	"runtime"
	"time"
)

// worker is the life of an instance.
type worker[T any] struct {
	*Scheduler[T]
	batch *batch[T] // that is being executed, or was the last
	items []Item[T]
	heard []*Ticket[T]
}

// Binder is an Executor that wants an operating-system thread of its own, to bind it to processors, say. Bind is called on
// that thread, ahead of the first batch; the thread ends with the scheduler.
//
// Others have none: to wake a goroutine that is locked to a thread takes two more switches between threads, some 15 µs.
type Binder interface{ Bind() }

// serve runs batches until the scheduler is closed and empty.
func (s *Scheduler[T]) serve(e Executor[T]) {
	if b, ok := e.(Binder); ok {
		runtime.LockOSThread() // and never unlocked: nothing else may run on a thread that is bound
		b.Bind()
	}
	w := worker[T]{Scheduler: s}
	for w.next() {
		for t := range w.batch.tickets.all() {
			w.items = append(w.items, t.item)
		}
		e.Execute(w.items)
		clear(w.items)
		w.items = w.items[:0]
	}
}

// next answers the requests of the batch that was executed and takes the next one; it blocks until there is one. The answers
// are given while the lock is free, but before the next execution. It returns false when there will be none any more.
func (w *worker[T]) next() bool {
	w.mu.Lock()
	if w.batch != nil {
		for w.batch.tickets.len > 0 {
			w.heard = w.settle(w.batch.tickets.pop(), nil, w.heard)
		}
		w.retire(w.batch)
		w.batch = nil
	}
	w.idle++
	w.take()
	w.mu.Unlock()

	announce(w.heard)
	clear(w.heard)
	w.heard = w.heard[:0]
	if w.batch != nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.take(); w.batch == nil && !w.draining; w.take() {
		w.work.Wait()
	}
	return w.batch != nil
}

// take gives the idle instance the next batch, if there is one. What is ready is taken before the queue is looked at: in
// Triton too the instance's thread is ahead of the batcher's, which it has just woken.
func (w *worker[T]) take() {
	now := time.Now()
	if w.ready.len == 0 {
		w.pump(now)
	}
	if w.ready.len == 0 {
		return
	}
	w.idle--
	b := w.pick()
	b.taken = true
	w.merge(b, now)
	if w.open == b {
		w.open = nil
	}
	w.batch = b
	w.pump(now) // a slot became free
}
