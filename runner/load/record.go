package load

import (
	"iter"
	"sync/atomic"
	"time"
)

// outcome is the way in which a request ended.
type outcome uint8

const (
	completed outcome = iota
	failed
	timedOut // failed since no answer came in time
	aborted  // the run ended before the answer arrived
)

// unknown stands for a missing instant.
const unknown = time.Duration(-1)

// record is one request. It is small, since all requests between two ticks are kept.
type record struct {
	request int
	// when it could have been sent: the scheduled instant in an open loop, the previous answer (or
	// unknown) in a closed one
	ready     time.Duration
	sent      time.Duration // when sending began
	end       time.Duration // when the last response that is not null arrived, or the failure
	responses int32         // number of responses that are not null
	outcome   outcome
	more      *details // nil for a request that completed with one response
}

// details are the parts that few records have.
type details struct {
	failure error           // of a request that did not complete
	earlier []time.Duration // instants of the responses before the last, if they are wanted
}

// arrival is an instant of the schedule of an open loop.
type arrival struct {
	at      time.Duration
	dropped bool // not sent, since too many requests were in flight
}

// pipe passes values from one writer to one reader without a lock. It is a list of blocks. The
// writer fills the last block, the reader empties the first. Its size depends on how far the reader
// lags behind.
type pipe[T any] struct {
	last *block[T] // used by the writer

	next *block[T] // used by the reader: the block in which it reads
	read int32     // number of values read from next

	// an emptied block for reuse, so that a reader that keeps up causes no garbage
	spare atomic.Pointer[block[T]]
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

// append adds a value. Only the writer calls it.
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

// drain yields the values since the last drain. Only the reader calls it.
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
