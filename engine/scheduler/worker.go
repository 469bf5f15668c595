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
	began time.Time // when it took the batch
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
	now := time.Now()
	if w.batch != nil {
		w.running -= w.batch.size
		if w.settings.gathers {
			w.returns.Answer(w.batch.size, now.Sub(w.origin), now.Sub(w.began))
		}
		for w.batch.tickets.Len() > 0 {
			w.heard = w.settle(w.batch.tickets.Pop(), nil, w.heard)
		}
		w.retire(w.batch)
		w.batch = nil
	}
	w.idle++
	w.takeBatch(now)
	w.mu.Unlock()

	announce(w.heard)
	clear(w.heard)
	w.heard = w.heard[:0]
	if w.batch != nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.takeBatch(time.Now()); w.batch == nil && !w.draining; w.takeBatch(time.Now()) {
		w.work.Wait()
	}
	return w.batch != nil
}

// takeBatch gives the idle instance the next batch, if there is one that need not grow. It takes a
// ready batch before it scans the queue. In Triton too, the instance's thread comes before the
// batcher's, which it has just woken.
func (w *worker[T]) takeBatch(now time.Time) {
	if w.ready.Len() == 0 {
		w.pump(now)
	}
	if w.ready.Len() == 0 {
		return
	}
	if until := w.gatherUntil(now); !until.IsZero() {
		w.due = 1 // an instance is woken when the wait is over
		w.wake.Set(until, now)
		return
	}
	w.idle--
	b := w.pick()
	b.taken = true
	w.merge(b, now)
	if w.open == b {
		w.open = nil
	}
	w.batch, w.began = b, now
	w.running += b.size
	w.returns.Take()
	w.pump(now) // a slot became free
}
