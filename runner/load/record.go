package load

import (
	"iter"
	"sync/atomic"
	"time"
)

// outcome says how a request ended.
type outcome uint8

const (
	completed outcome = iota
	failed
	timedOut // failed for want of an answer
	aborted  // the run ended before the answer came
)

// unknown stands for an instant that there is not.
const unknown = time.Duration(-1)

// record is one request. It is kept small, since there are as many as there are requests between two ticks.
type record struct {
	request   int
	ready     time.Duration // when it could have been sent: open loop: its scheduled instant; closed loop: the previous answer, or unknown
	sent      time.Duration // when sending began
	end       time.Duration // when the last response that was not null came, or the failure
	responses int32         // that were not null
	outcome   outcome
	more      *details // nil for a request that completed with one response
}

// details are what few records have.
type details struct {
	failure error           // of a request that did not complete
	earlier []time.Duration // the responses before the last, if they are wanted
}

// arrival is an instant of the schedule of an open loop.
type arrival struct {
	at      time.Duration
	dropped bool // too many requests were in flight: it was not sent
}

// pipe hands values from one writer to one reader without a lock: a list of blocks, of which the writer fills the last and the reader
// empties the first. Its size depends on how far the reader lags behind.
type pipe[T any] struct {
	last *block[T] // the writer's

	next *block[T] // the reader's: the block it reads in
	read int32     // values of it that were read

	spare atomic.Pointer[block[T]] // an emptied block, if any: a reader that keeps up leaves the collector nothing to do
}

type block[T any] struct {
	values [64]T
	filled atomic.Int32
	next   atomic.Pointer[block[T]]
}

func newPipe[T any]() *pipe[T] {
	b := new(block[T])
	return &pipe[T]{last: b, next: b}
}

// append adds a value; only the writer calls it.
func (p *pipe[T]) append(v T) {
	n := p.last.filled.Load()
	if int(n) == len(p.last.values) {
		b := p.spare.Swap(nil)
		if b == nil {
			b = new(block[T])
		}
		p.last.next.Store(b)
		p.last, n = b, 0
	}
	p.last.values[n] = v
	p.last.filled.Store(n + 1)
}

// drain yields the values that came since the last drain; only the reader calls it.
func (p *pipe[T]) drain() iter.Seq[T] {
	return func(yield func(T) bool) {
		for {
			for filled := p.next.filled.Load(); p.read < filled; {
				p.read++
				if !yield(p.next.values[p.read-1]) {
					return
				}
			}
			following := p.next.next.Load()
			if int(p.read) < len(p.next.values) || following == nil {
				return
			}
			emptied := p.next
			p.next, p.read = following, 0
			emptied.filled.Store(0)
			emptied.next.Store(nil)
			p.spare.Store(emptied)
		}
	}
}
