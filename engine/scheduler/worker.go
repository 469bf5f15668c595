package scheduler

import (
	"runtime"
	"time"
)

// worker is the loop of an instance.
type worker[T any] struct {
	*Scheduler[T]
	batch *batch[T] // the batch being executed, or the last one
	items []Item[T]
	heard []*Ticket[T]
}

// Binder is an Executor that needs its own operating-system thread, for example to bind it to
// processors. Bind is called on that thread before the first batch. The thread ends with the
// scheduler.
//
// Other executors have no such thread: waking a goroutine that is locked to a thread takes two more
// thread switches, about 15 µs.
type Binder interface{ Bind() }

// serve runs batches until the scheduler is closed and empty.
func (s *Scheduler[T]) serve(e Executor[T]) {
	if b, ok := e.(Binder); ok {
		runtime.LockOSThread() // never unlocked, so that no other goroutine runs on a bound thread
		b.Bind()
	}
	w := worker[T]{Scheduler: s}
	for w.next() {
		for t := range w.batch.tickets.All() {
			w.items = append(w.items, t.item)
		}
		e.Execute(w.items)
		clear(w.items)
		w.items = w.items[:0]
	}
}

// next answers the requests of the executed batch and takes the next one. It blocks until there is
// one. It answers without holding the lock, but before the next execution. It returns false when
// there will be no more batches.
func (w *worker[T]) next() bool {
	w.mu.Lock()
	if w.batch != nil {
		for w.batch.tickets.Len() > 0 {
			w.heard = w.settle(w.batch.tickets.Pop(), nil, w.heard)
		}
		w.retire(w.batch)
		w.batch = nil
	}
	w.idle++
	w.takeBatch()
	w.mu.Unlock()

	announce(w.heard)
	clear(w.heard)
	w.heard = w.heard[:0]
	if w.batch != nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.takeBatch(); w.batch == nil && !w.draining; w.takeBatch() {
		w.work.Wait()
	}
	return w.batch != nil
}

// takeBatch gives the idle instance the next batch, if there is one. It takes a ready batch before
// it scans the queue. In Triton too, the instance's thread comes before the batcher's, which it has
// just woken.
func (w *worker[T]) takeBatch() {
	now := time.Now()
	if w.ready.Len() == 0 {
		w.pump(now)
	}
	if w.ready.Len() == 0 {
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
