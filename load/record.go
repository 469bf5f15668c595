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
	aborted // the run ended before the answer came
)

// record is one request: when it ended, and how long it took.
type record struct {
	end     time.Duration
	latency time.Duration
	outcome outcome
}

// recordLog hands records from one writer to one reader without a lock: a list of blocks, of which the writer fills the
// last and the reader forgets the read ones.
type recordLog struct {
	last *block // the writer's

	next *block // the reader's: the block it reads in
	read int32  // records of it that were read
}

type block struct {
	records [256]record
	filled  atomic.Int32
	next    atomic.Pointer[block]
}

func newRecordLog() *recordLog {
	b := new(block)
	return &recordLog{last: b, next: b}
}

// append adds a record; only the writer calls it.
func (l *recordLog) append(r record) {
	n := l.last.filled.Load()
	if int(n) == len(l.last.records) {
		b := new(block)
		l.last.next.Store(b)
		l.last, n = b, 0
	}
	l.last.records[n] = r
	l.last.filled.Store(n + 1)
}

// drain yields the records that came since the last drain; only the reader calls it.
func (l *recordLog) drain() iter.Seq[record] {
	return func(yield func(record) bool) {
		for {
			for filled := l.next.filled.Load(); l.read < filled; {
				l.read++
				if !yield(l.next.records[l.read-1]) {
					return
				}
			}
			following := l.next.next.Load()
			if int(l.read) < len(l.next.records) || following == nil {
				return
			}
			l.next, l.read = following, 0
		}
	}
}
