package queuesim

import (
	"math"
	"slices"
)

// request is one that has arrived.
type request struct {
	sent, at float64 // s; at: its arrival
	rows     int     // inferences
	kind     int     // requests of different kinds never share a batch
	of       int     // of a pipeline: the request for which a stage gets this one
}

// batch is a range of consecutive requests, since they are served in the order of their arrival.
type batch struct {
	first, end int // indices of requests
	rows       int
	closed     bool // no more requests join it
	kind       int  // of its requests
	// no other batch is merged with it, since the next request in line was of another kind
	alone bool
}

// batcher is Triton's dynamic batcher, or its plain queue. It follows engine/scheduler function by
// function; the reasons stand there. Unlike the scheduler it has no clock, priorities and timeouts,
// and one order of service.
type batcher struct {
	dynamic   bool
	max       int
	preferred []int   // ascending
	delay     float64 // s
	ahead     int     // batches that may be ready
	mixed     bool    // requests are of several kinds
	gathers   bool    // idle instances may leave the open batch to grow

	requests []request // all requests since the start
	head     int       // the first request that is in no batch
	rows     int       // rows of the requests that are in no batch
	ready    fifo[batch]
	open     batch   // the batch being formed: ready behind all others once it has rows
	forming  bool    // an open batch exists
	awaited  int     // rows in the queue from which on a new look is useful while the open batch waits
	wake     float64 // s, time at which the oldest request has waited delay
}

func (b *batcher) reset(c Batcher, mixed bool) {
	size := max(c.MaxBatch, 1)
	preferred := append(b.preferred[:0], c.Preferred...)
	if len(preferred) == 0 {
		preferred = append(preferred, size)
	}
	slices.Sort(preferred)
	b.ready.reset()
	*b = batcher{
		dynamic: c.Dynamic, max: size, preferred: preferred, delay: c.Delay.Seconds(), ahead: 2 * max(c.Instances, 1), mixed: mixed,
		requests: b.requests[:0], ready: b.ready, wake: math.Inf(1),
	}
	b.gathers = c.Dynamic && b.largest() > 1 && c.Delay == 0
}

// push adds a request that arrives now.
func (b *batcher) push(r request) {
	b.requests = append(b.requests, r)
	b.rows += r.rows
	if !b.forming || b.mixed || b.rows >= b.awaited {
		b.pump(r.at)
	}
}

// isReady reports whether a batch for an instance is ready.
func (b *batcher) isReady() bool {
	if !b.dynamic {
		return b.head < len(b.requests)
	}
	return b.ready.len() > 0 || b.forming && b.open.rows > 0
}

// isGrowing reports whether the only batch that is ready may grow, and may be left to grow.
func (b *batcher) isGrowing() bool { return b.gathers && b.ready.len() == 0 && b.forming }

// largest returns the largest preferred size, beyond which a batch does not grow.
func (b *batcher) largest() int { return b.preferred[len(b.preferred)-1] }

// take gives the batch that was ready first to an instance. One must be ready.
func (b *batcher) take(now float64) batch {
	if !b.dynamic {
		b.open = batch{first: b.head, end: b.head}
		b.join(1)
		return b.open
	}
	next := b.pop()
	if b.delay > 0 && !next.alone {
		b.merge(&next, now)
	}
	b.pump(now)
	return next
}

func (b *batcher) pop() batch {
	if b.ready.len() > 0 {
		return b.ready.pop()
	}
	b.forming = false
	return b.open
}

// merge adds to a taken batch the batches behind it that have waited longer than the delay, while
// they fit.
func (b *batcher) merge(next *batch, now float64) {
	for b.isReady() {
		other := b.open
		if b.ready.len() > 0 {
			other = *b.ready.front()
		}
		if other.alone || now <= b.requests[other.first].at+b.delay {
			return
		}
		if b.ready.len() == 0 {
			b.close() // it grows no further, whether it fits or not
		}
		if next.rows+other.rows > b.max || next.kind != other.kind {
			return
		}
		b.ready.pop()
		next.end, next.rows = other.end, next.rows+other.rows
	}
}

// pump forms batches while there are free slots, and sets the time of the next look.
func (b *batcher) pump(now float64) {
	b.wake = math.Inf(1)
	for b.dynamic && b.head < len(b.requests) && b.hasSlot() {
		if !b.forming {
			b.open, b.forming, b.awaited = batch{first: b.head, end: b.head}, true, 0
		}
		take, until := b.decide(now)
		b.join(take)
		if b.open.closed {
			b.close()
		}
		if until > 0 {
			b.wake = until
			return
		}
	}
}

// hasSlot reports whether a batch may be formed or extended: two per instance are prepared ahead.
func (b *batcher) hasSlot() bool {
	formed := b.ready.len()
	if b.forming && b.open.rows > 0 {
		formed++
	}
	return formed < b.ahead
}

// join moves the next requests of the queue to the open batch.
func (b *batcher) join(count int) {
	for _, r := range b.requests[b.head : b.head+count] {
		b.open.kind = r.kind
		b.open.rows += r.rows
		b.rows -= r.rows
	}
	b.head += count
	b.open.end = b.head
}

// close stops the growth of the open batch.
func (b *batcher) close() {
	b.forming = false
	if b.open.rows > 0 {
		b.ready.push(b.open)
	}
}

// outlook is the result of a look at the queue's head.
type outlook struct {
	pending, rows int  // requests that could join the open batch, and their rows
	best          int  // requests that make up a preferred size; 0: no number does
	sendNow       bool // the batch cannot grow beyond pending
}

// look scans the queue for requests that could join the open batch, and closes a batch that cannot
// grow any more.
func (b *batcher) look() outlook {
	var o outlook
	for _, r := range b.requests[b.head:] {
		size := b.open.rows + o.rows + r.rows
		if b.open.rows+o.pending > 0 {
			if size > b.largest() && o.best == 0 {
				o.best, b.open.closed = o.pending, true
			}
			if size > b.max {
				o.sendNow = true
				break
			}
			if r.kind != b.kindOf() {
				o.sendNow, b.open.closed, b.open.alone = true, true, true
				break
			}
		}
		o.pending++
		o.rows += r.rows
		if slices.Contains(b.preferred, size) {
			o.best = o.pending
		}
	}
	return o
}

// kindOf returns the kind of the open batch, or of the queue's head, which begins it.
func (b *batcher) kindOf() int {
	if b.open.rows > 0 {
		return b.open.kind
	}
	return b.requests[b.head].kind
}

// decide returns the number of requests that join the open batch now. If until is not 0, the first
// of them may wait for others until then.
func (b *batcher) decide(now float64) (take int, until float64) {
	o := b.look()
	if o.pending == 0 {
		return 0, 0
	}
	latest := b.requests[b.head].at + b.delay
	late := b.delay > 0 && now >= latest
	size := b.open.rows + o.rows
	switch {
	case o.best != 0 && !late:
		b.open.closed = b.open.closed || b.delay == 0
		return o.best, 0
	case o.sendNow || size >= b.largest():
		b.open.closed = true
		return o.pending, 0
	case late || b.delay == 0:
		return o.pending, 0
	}
	b.awaited = b.nextPreferred(size) - b.open.rows
	if b.open.rows > 0 && !b.open.closed && !slices.Contains(b.preferred, b.open.rows) {
		return o.pending, 0
	}
	return 0, latest
}

// nextPreferred returns the smallest preferred size above size, or 0.
func (b *batcher) nextPreferred(size int) int {
	if i, _ := slices.BinarySearch(b.preferred, size+1); i < len(b.preferred) {
		return b.preferred[i]
	}
	return 0
}
