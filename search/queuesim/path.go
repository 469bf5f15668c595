package queuesim

import (
	"container/heap"
	"math"
)

// path is the part of the server that a request passes before it waits for an instance: client,
// wire and front end. Their work runs on the processors on which the instances compute, on as many
// cores as there are requests. If these and the instances' threads exceed the cores, all share the
// cores equally.
//
// Without a spread, requests pass in order. With one they pass at the same time and share the path's
// cores, so that some overtake others.
//
// A request alone on the machine takes more processor time than one among many. The difference is
// the waking of threads, which the requests in flight share.
type path struct {
	cost    float64 // s of processor time per request under load; 0: there is no path
	wake    float64 // s of additional processor time, which the requests in flight share
	cores   float64
	threads float64 // of an instance
	spread  float64 // ServiceCurve.PathSpread
	// slowness is the factor by which requests that are sent now take longer
	slowness float64

	requests int     // on the path
	inFlight int     // sent and not answered
	speed    float64 // seconds of processor time per second for all on the path, since `since`
	since    float64 // s
	ends     float64 // s, time at which the next request has passed

	// in order

	waiting fifo[arrival]
	whole   float64 // s of processor time of the first request
	left    float64 // s of it that it still needs

	// at the same time

	passers passers
	given   float64 // s of processor time that each request on the path got since the beginning
	numbers random
}

// leastPath is the least share of the processor time of a measurable path: less is lost in that of the
// instances.
const leastPath = 0.1

// PathOf returns the processor time that a request takes on the path, in s (ServiceCurve.Path). Clients and server
// used a processor time for some requests, of which instances computed a part. Both may be per second, as are
// the requests then. It returns false if that is too little to measure.
func PathOf(used, computed, requests float64) (path float64, ok bool) {
	if requests <= 0 || used-computed < leastPath*used {
		return 0, false
	}
	return (used - computed) / requests, true
}

// passer is a request that passes beside others.
type passer struct {
	request
	work  float64 // s of processor time
	until float64 // value of path.given at which it has passed
}

// passers is a heap with the passer that has passed first on top.
type passers []passer

// Len implements heap.Interface.
func (p passers) Len() int { return len(p) }

// Less implements heap.Interface.
func (p passers) Less(i, k int) bool { return p[i].until < p[k].until }

// Swap implements heap.Interface.
func (p passers) Swap(i, k int) { p[i], p[k] = p[k], p[i] }

// Push implements heap.Interface.
func (p *passers) Push(x any) { *p = append(*p, x.(passer)) }

// Pop implements heap.Interface.
func (p *passers) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	*p = (*p)[:last]
	return x
}

func (p *path) reset(c ServiceCurve, seed uint64) {
	p.waiting.reset()
	*p = path{
		cost: c.Path, wake: max(0, c.Overhead-c.Path), cores: float64(max(c.Cores, 1)), threads: float64(c.Threads), spread: c.PathSpread, slowness: 1,
		waiting: p.waiting, passers: p.passers[:0], numbers: p.numbers, ends: math.Inf(1),
	}
	if p.spread > 0 {
		p.numbers.seed(seed, 5)
	}
}

// push adds requests that are sent now.
func (p *path) push(a arrival, now float64) {
	p.inFlight += a.requests
	p.settle(now)
	if p.spread > 0 {
		for range a.requests {
			work := p.work() * logNormal(&p.numbers, p.spread)
			heap.Push(&p.passers, passer{request{sent: a.at, rows: a.rows}, work, p.given + work})
		}
	} else {
		p.waiting.push(a)
		if p.requests == 0 {
			p.begin()
		}
	}
	p.requests += a.requests
}

// begin lets the first request in order begin to pass.
func (p *path) begin() {
	p.whole = p.work()
	p.left = p.whole
}

// work returns the processor time in seconds of the next request.
func (p *path) work() float64 {
	return p.slowness * (p.cost + p.wake/float64(max(p.inFlight, 1)))
}

// pop removes the request that has passed now, and returns it with its processor time in seconds.
func (p *path) pop(now float64) (r request, work float64) {
	p.settle(now)
	p.requests--
	if p.spread > 0 {
		first := heap.Pop(&p.passers).(passer)
		p.given = max(p.given, first.until)
		first.at = now
		return first.request, first.work
	}
	first := p.waiting.front()
	r, work = request{sent: first.at, at: now, rows: first.rows}, p.whole
	if first.requests--; first.requests == 0 {
		p.waiting.pop()
	}
	p.begin()
	return r, work
}

// settle gives the requests the processor time since the last computation.
func (p *path) settle(now float64) {
	got := (now - p.since) * p.speed
	p.since = now
	if p.requests == 0 {
		return
	}
	p.left = max(0, p.left-got)
	p.given += got / float64(p.requests)
}

// pace computes again when the next request will have passed, with the given number of busy
// instances. others are the cores that other models ask for. It returns the factor by which path and
// others slow the instances down, beside what their times include: those are of known busy instances.
//
// If more cores are asked for than there are, all have the same share of what they ask for (processor
// sharing; Kleinrock, Queueing Systems 2, 1976, chapter 4). The instances' times include that they
// slow each other down, so they are divided by that part.
func (p *path) pace(now float64, busy, known int, others float64) (slow float64) {
	if p.cost == 0 && others == 0 {
		return 1
	}
	asked := p.computing(busy) + p.passing() + others
	if p.cost > 0 {
		p.settle(now)
		p.ends = math.Inf(1)
		p.speed = p.passing() * min(1, p.cores/asked)
		switch {
		case p.requests == 0:
		case p.spread > 0:
			p.ends = now + max(0, p.passers[0].until-p.given)*float64(p.requests)/p.speed
		default:
			p.ends = now + p.left/p.speed
		}
	}
	return max(1, asked/p.cores) / max(1, p.computing(known)/p.cores)
}

// demand returns the cores that instances and path ask for, with the given number of busy instances.
func (p *path) demand(busy int) float64 { return p.computing(busy) + p.passing() }

func (p *path) computing(busy int) float64 { return float64(busy) * p.threads }

// passing returns the cores on which requests pass; 0 without a path.
func (p *path) passing() float64 { return min(float64(p.requests), p.cores) }
