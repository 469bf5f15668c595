package queuesim

import (
	"math"
	"math/rand/v2"
)

// Simulator simulates loads one after the other in the same memory. The zero value is ready. It is
// for one goroutine, and must not be copied.
type Simulator struct {
	batcher   batcher
	curve     ServiceCurve
	instances int

	now      float64 // s
	due      fifo[arrival]
	closed   bool      // a closed loop: an answered client sends again
	rate     float64   // requests/s of an open loop
	schedule Arrivals  // of an open loop; nil: Poisson
	ranks    []float64 // Options.Ranks
	ranked   int       // ranks that were used
	upcoming int       // arrivals of an open loop that are not yet in due
	path     path
	running  []execution
	tally    tally

	arrivals, service, mixing random

	kinds   func() int                    // for tests: kind of the next request; nil: by the shares
	factor  func() float64                // for tests: ratio of an execution's time to the curve's; nil: log-normal
	observe func(e execution, at float64) // for tests: sees each execution when it ends
}

// arrival is a group of requests that are sent at the same instant. All clients send at the start,
// and later those whose requests shared a batch. All arrivals wait in one queue, because all
// answers take equally long.
type arrival struct {
	at       float64 // s
	requests int
	rows     int // inferences in each
}

// execution is a batch in an instance.
type execution struct {
	batch
	begin          float64 // s
	alone, crowded float64 // s, its full time alone and crowded
	busy           int     // busy instances when its end was computed; 0: it is new
	slow           float64 // factor by which the path slowed it down then
	since          float64 // s, the instant of that computation
	left           float64 // remaining work then: 1 at the start
	time           float64 // s, of the full work at that pace
	ends           float64 // s
}

// random is a source of numbers that can be reseeded.
type random struct {
	source  rand.PCG
	numbers *rand.Rand
}

func (r *random) seed(seed, stream uint64) {
	if r.numbers == nil {
		r.numbers = rand.New(&r.source)
	}
	r.source.Seed(seed, stream)
}

func (s *Simulator) reset(b Batcher, c ServiceCurve, seed uint64) {
	s.batcher.reset(b, len(c.Kinds) > 1)
	s.curve, s.instances = c, max(b.Instances, 1)
	s.now, s.closed, s.rate, s.schedule, s.upcoming = 0, false, 0, nil, 0
	s.ranks, s.ranked = nil, 0
	s.due.reset()
	s.path.reset(c)
	s.running = s.running[:0]
	s.arrivals.seed(seed, 0)
	s.service.seed(seed, 1)
	s.mixing.seed(seed, 2)
}

// run processes events until the tally is complete, or no event is left.
func (s *Simulator) run() {
	for !s.tally.isComplete(s.now) {
		at, what, i := s.next()
		if what == nothing {
			return
		}
		s.tally.pass(at-s.now, len(s.running))
		s.now = at
		switch what {
		case completion:
			s.complete(i)
		case sending:
			s.send()
		case passing:
			r := s.path.pop(s.now)
			r.kind = s.kind()
			s.batcher.push(r)
		case delayOver:
			s.batcher.pump(s.now)
		}
		s.dispatch()
		s.pace()
	}
}

type event int

const (
	nothing event = iota
	completion
	sending
	passing // the path to the server
	delayOver
)

// next returns the next event, and the index of the execution for a completion. At the same instant
// completions come first: an instance takes its next batch before the clients receive the last
// answer.
func (s *Simulator) next() (at float64, what event, i int) {
	at = math.Inf(1)
	for k := range s.running {
		if end := s.running[k].ends; end < at {
			at, what, i = end, completion, k
		}
	}
	if s.due.len() > 0 && s.due.front().at < at {
		at, what = s.due.front().at, sending
	}
	if s.path.ends < at {
		at, what = s.path.ends, passing
	}
	if s.batcher.wake < at {
		at, what = s.batcher.wake, delayOver
	}
	return at, what, i
}

// send sends the due requests onto the path, or without a path directly to the server. An idle
// instance takes the first of several requests and does not wait for the others. In a real server
// they arrive some microseconds apart, and no instance waits without a queue delay.
func (s *Simulator) send() {
	a := s.due.pop()
	if s.path.cost > 0 {
		s.path.push(a, s.now)
	} else {
		for range a.requests {
			s.batcher.push(request{sent: s.now, at: s.now, rows: a.rows, kind: s.kind()})
			s.dispatch()
		}
	}
	if s.upcoming > 0 {
		s.upcoming--
		s.due.push(arrival{s.following(), 1, a.rows})
	}
}

// following returns the instant of the next arrival of an open loop, in s. Without a schedule it draws
// the distance from this one, of a Poisson process.
func (s *Simulator) following() float64 {
	if s.schedule != nil {
		return max(s.now, s.schedule.Next().Seconds())
	}
	return s.now + s.arrivals.numbers.ExpFloat64()/s.rate
}

// kind returns the kind of the next request: by its rank, or drawn by the shares.
func (s *Simulator) kind() int {
	switch {
	case s.kinds != nil:
		return s.kinds()
	case len(s.curve.Kinds) < 2:
		return 0
	}
	x := s.position()
	last := len(s.curve.Kinds) - 1
	for i, k := range s.curve.Kinds[:last] {
		if x < k.Share {
			return i
		}
		x -= k.Share
	}
	return last
}

// position returns the rank of the next request, or a random one.
func (s *Simulator) position() float64 {
	if len(s.ranks) == 0 {
		return s.mixing.numbers.Float64()
	}
	s.ranked++
	return s.ranks[(s.ranked-1)%len(s.ranks)]
}

// dispatch gives ready batches to idle instances.
func (s *Simulator) dispatch() {
	for len(s.running) < s.instances && s.batcher.isReady() {
		b := s.batcher.take(s.now)
		factor := s.draw()
		s.running = append(s.running, execution{
			batch: b, begin: s.now, left: 1,
			alone:   factor * s.curve.timeOf(b.kind, b.rows, 1, s.instances),
			crowded: factor * s.curve.timeOf(b.kind, b.rows, s.instances, s.instances),
		})
	}
}

// draw draws the random factor of an execution's time: log-normal with mean 1.
func (s *Simulator) draw() float64 {
	switch spread := s.curve.Spread; {
	case s.factor != nil:
		return s.factor()
	case spread > 0:
		return math.Exp(spread*s.service.numbers.NormFloat64() - spread*spread/2)
	}
	return 1
}

// pace recomputes the ends of the executions after others have begun or ended. Instances share
// common resources, above all cores, during their whole execution. So a batch runs faster once its
// neighbour is done.
func (s *Simulator) pace() {
	busy := len(s.running)
	slow := s.path.pace(s.now, busy)
	for i := range s.running {
		e := &s.running[i]
		if e.busy == busy && e.slow == slow {
			continue
		}
		if e.busy > 0 {
			e.left = max(0, e.left-(s.now-e.since)/e.time)
		}
		e.busy, e.slow, e.since = busy, slow, s.now
		e.time = slow * crowd(e.alone, e.crowded, busy, s.instances)
		e.ends = s.now + e.left*e.time
	}
}

// complete ends an execution. Its clients receive the answer, and in a closed loop send again after
// the curve's overhead, unless the path includes the overhead.
func (s *Simulator) complete(i int) {
	e := s.running[i]
	last := len(s.running) - 1
	s.running[i] = s.running[last]
	s.running = s.running[:last]
	answered := s.batcher.requests[e.first:e.end]
	overhead := s.curve.Overhead
	if s.path.cost > 0 {
		overhead = 0
		s.path.inFlight -= len(answered)
	}
	s.tally.add(answered, e, s.now, overhead)
	if s.observe != nil {
		s.observe(e, s.now)
	}
	if s.closed {
		s.due.push(arrival{s.now + overhead, len(answered), answered[0].rows})
	}
}
