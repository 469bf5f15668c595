package queuesim

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"tuner/engine/gathering"
	"tuner/measure"
)

// lane is one model on its server: its clients, path, batcher and instances, and what is counted of
// them. The lanes of a simulation have the cores in common, and nothing else.
type lane struct {
	batcher   batcher
	curve     ServiceCurve
	instances int
	times     []times // of batches by rows and kind, as far as there were any

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
	returns  gathering.Rule // of the batcher's clients
	gather   float64        // s, until when idle instances leave the open batch to grow; infinite: they do not
	tally    tally

	arrivals, mixing random
	factors          factors
	speed            speed

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

// times are the full times of a batch in s, alone and with all instances busy; 0 until they are read
// from the curve.
type times struct{ alone, crowded float64 }

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

// begin makes a lane ready for a load, before its first request. A lane among others sends until the
// simulation ends. It returns false if the server refuses the load's requests.
func (l *lane) begin(b Batcher, c ServiceCurve, load measure.Load, o Options, isAmong bool) bool {
	rows, requests := max(load.BatchSize, 1), max(cmp.Or(o.Requests, defaultRequests), 1)
	l.reset(b, c, o.Seed)
	if b.refuses(rows) {
		return false
	}
	skip := warmUp(requests, load.Concurrency)
	l.tally.reset(skip, requests)
	if l.closed = load.Concurrency > 0; l.closed {
		l.due.push(arrival{0, load.Concurrency, rows})
		return true
	}
	l.rate, l.schedule, l.ranks = load.RequestRate, o.Arrivals, o.Ranks
	// Later requests queue behind all that run or are in a batch when the last counted one
	// ends.
	l.upcoming = skip + requests + l.inBatches(rows)
	if isAmong {
		l.upcoming = math.MaxInt
	}
	l.due.push(arrival{l.following(), 1, rows})
	return true
}

// inBatches returns the number of requests that run or are in a batch at most, and some more.
func (l *lane) inBatches(rows int) int { return (3*l.instances + 2) * l.batcher.max / rows }

func (l *lane) reset(b Batcher, c ServiceCurve, seed uint64) {
	l.batcher.reset(b, len(c.Kinds) > 1)
	l.curve, l.instances, l.times = c, max(b.Instances, 1), l.times[:0]
	l.now, l.closed, l.rate, l.schedule, l.upcoming = 0, false, 0, nil, 0
	l.ranks, l.ranked = nil, 0
	l.due.reset()
	l.path.reset(c, seed)
	l.running = l.running[:0]
	l.returns, l.gather = gathering.New(l.instances), math.Inf(1)
	l.arrivals.seed(seed, 0)
	l.factors.begin(seed, c.Spread)
	l.mixing.seed(seed, 2)
	l.speed.reset(c.Speed, seed)
}

type event int

const (
	nothing event = iota
	completion
	sending
	passing   // the path to the server
	delayOver // the wait for others, or for clients that come back
)

// next returns the next event, and the index of the execution for a completion. At the same instant
// completions come first: an instance takes its next batch before the clients receive the last
// answer.
func (l *lane) next() (at float64, what event, i int) {
	at = math.Inf(1)
	for k := range l.running {
		if end := l.running[k].ends; end < at {
			at, what, i = end, completion, k
		}
	}
	if l.due.len() > 0 && l.due.front().at < at {
		at, what = l.due.front().at, sending
	}
	if l.path.ends < at {
		at, what = l.path.ends, passing
	}
	if wake := min(l.batcher.wake, l.gather); wake < at {
		at, what = wake, delayOver
	}
	return at, what, i
}

// advance lets time pass until an instant.
func (l *lane) advance(at float64) {
	l.tally.pass(at-l.now, len(l.running))
	l.now = at
}

// handle makes an event of the lane happen, now.
func (l *lane) handle(what event, i int) {
	switch what {
	case completion:
		l.complete(i)
	case sending:
		l.send()
	case passing:
		l.path.slowness = l.speed.slowness(l.now)
		r, work := l.path.pop(l.now)
		r.kind = l.kind()
		l.tally.pathed(work)
		l.arrive(r)
	case delayOver:
		l.batcher.pump(l.now)
	}
	l.dispatch()
}

// send sends the due requests onto the path, or without a path directly to the server. An idle
// instance takes the first of several requests and does not wait for the others. In a real server
// they arrive some microseconds apart, and no instance waits without a queue delay.
func (l *lane) send() {
	a := l.due.pop()
	if l.path.cost > 0 {
		l.path.slowness = l.speed.slowness(l.now)
		l.path.push(a, l.now)
	} else {
		for range a.requests {
			l.arrive(request{sent: l.now, at: l.now, rows: a.rows, kind: l.kind()})
			l.dispatch()
		}
	}
	if l.upcoming > 0 {
		l.upcoming--
		l.due.push(arrival{l.following(), 1, a.rows})
	}
}

// following returns the instant of the next arrival of an open loop, in s. Without a schedule it draws
// the distance from this one, of a Poisson process.
func (l *lane) following() float64 {
	if l.schedule != nil {
		return max(l.now, l.schedule.Next().Seconds())
	}
	return l.now + l.arrivals.numbers.ExpFloat64()/l.rate
}

// kind returns the kind of the next request: by its rank, or drawn by the shares.
func (l *lane) kind() int {
	switch {
	case l.kinds != nil:
		return l.kinds()
	case len(l.curve.Kinds) < 2:
		return 0
	}
	x := l.position()
	last := len(l.curve.Kinds) - 1
	for i, k := range l.curve.Kinds[:last] {
		if x < k.Share {
			return i
		}
		x -= k.Share
	}
	return last
}

// position returns the rank of the next request, or a random one.
func (l *lane) position() float64 {
	if len(l.ranks) == 0 {
		return l.mixing.numbers.Float64()
	}
	l.ranked++
	return l.ranks[(l.ranked-1)%len(l.ranks)]
}

// arrive adds a request that arrives now.
func (l *lane) arrive(r request) {
	if l.batcher.gathers {
		l.returns.Arrive(r.rows, instant(l.now))
	}
	l.batcher.push(r)
}

// dispatch gives ready batches to idle instances.
func (l *lane) dispatch() {
	l.gather = math.Inf(1)
	for len(l.running) < l.instances && l.batcher.isReady() {
		if until := l.gatherUntil(); until > l.now {
			l.gather = until
			return
		}
		b := l.batcher.take(l.now)
		l.returns.Take()
		factor, full := l.draw()*l.speed.slowness(l.now), l.timesOf(b)
		l.running = append(l.running, execution{batch: b, begin: l.now, left: 1, alone: factor * full.alone, crowded: factor * full.crowded})
	}
}

// timesOf returns the times of a batch by the curve, which is read once for each number of rows and kind.
func (l *lane) timesOf(b batch) times {
	at := b.rows
	if kinds := len(l.curve.Kinds); kinds > 0 {
		at = b.rows*kinds + b.kind
	}
	for len(l.times) <= at {
		l.times = append(l.times, times{})
	}
	if l.times[at].alone == 0 {
		l.times[at] = times{l.curve.timeOf(b.kind, b.rows, 1, l.instances), l.curve.timeOf(b.kind, b.rows, l.instances, l.instances)}
	}
	return l.times[at]
}

// gatherUntil returns until when idle instances leave the batch that is ready. Not after now: one takes
// it now.
func (l *lane) gatherUntil() float64 {
	if !l.batcher.isGrowing() {
		return l.now
	}
	running := 0
	for _, e := range l.running {
		running += e.rows
	}
	at := instant(l.now)
	until := l.returns.Wait(l.batcher.open.rows+l.batcher.rows, running, l.batcher.largest(), at)
	if until <= at {
		return l.now
	}
	return until.Seconds()
}

// instant returns an instant in s as that of a rule.
func instant(seconds float64) time.Duration { return time.Duration(math.Round(seconds * 1e9)) }

// draw draws the random factor of an execution's time: log-normal with mean 1.
func (l *lane) draw() float64 {
	switch {
	case l.factor != nil:
		return l.factor()
	case l.curve.Spread > 0:
		return l.factors.draw()
	}
	return 1
}

// factors are the random factors of the times of a simulation's executions, in their order. They depend on
// seed and spread alone, so that the simulations of an engine's cells have them in common.
type factors struct {
	random
	of     uint64 // seed
	spread float64
	list   []float64
	next   int
}

// begin makes the first factor the next one.
func (f *factors) begin(seed uint64, spread float64) {
	f.next = 0
	if f.numbers == nil || f.of != seed || f.spread != spread {
		f.of, f.spread, f.list = seed, spread, f.list[:0]
		f.seed(seed, 1)
	}
}

func (f *factors) draw() float64 {
	if f.next == len(f.list) {
		f.list = append(f.list, logNormal(&f.random, f.spread))
	}
	f.next++
	return f.list[f.next-1]
}

// logNormal draws a number with mean 1 whose logarithm has a standard deviation.
func logNormal(r *random, spread float64) float64 {
	return math.Exp(spread*r.numbers.NormFloat64() - spread*spread/2)
}

// pace recomputes the ends of the executions after others have begun or ended. Instances share
// common resources, above all cores, during their whole execution. So a batch runs faster once its
// neighbour is done. others are the cores that other models ask for.
func (l *lane) pace(others float64) { l.paceAmong(others, len(l.running)) }

// paceAmong is pace for a lane whose instances have as many busy ones around them as if busy of its own were.
func (l *lane) paceAmong(others float64, busy int) {
	l.slow(l.path.pace(l.now, len(l.running), busy, others), busy)
}

// slow recomputes the ends of the executions with the busy instances that the curve knows, and a factor by which
// others slow them down.
func (l *lane) slow(slow float64, busy int) {
	for i := range l.running {
		e := &l.running[i]
		if e.busy == busy && e.slow == slow {
			continue
		}
		if e.busy > 0 {
			e.left = max(0, e.left-(l.now-e.since)/e.time)
		}
		e.busy, e.slow, e.since = busy, slow, l.now
		e.time = slow * crowd(e.alone, e.crowded, busy, l.instances)
		e.ends = l.now + e.left*e.time
	}
}

// complete ends an execution. Its clients receive the answer, and in a closed loop send again after
// the curve's overhead, unless the path includes the overhead.
func (l *lane) complete(i int) {
	e := l.finish(i)
	answered := l.batcher.requests[e.first:e.end]
	overhead := l.curve.Overhead
	if l.path.cost > 0 {
		overhead = 0
		l.path.inFlight -= len(answered)
	}
	l.tally.add(answered, e, l.now, overhead, l.curve.Sizes[len(l.curve.Sizes)-1])
	if l.observe != nil {
		l.observe(e, l.now)
	}
	if l.closed {
		l.due.push(arrival{l.now + overhead, len(answered), answered[0].rows})
	}
}

// finish removes an execution that ends now.
func (l *lane) finish(i int) execution {
	e := l.running[i]
	last := len(l.running) - 1
	l.running[i] = l.running[last]
	l.running = l.running[:last]
	if l.batcher.gathers {
		l.returns.Answer(e.rows, instant(l.now), instant(l.now-e.begin))
	}
	return e
}
