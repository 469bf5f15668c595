package queuesim

import "math"

// path is the part of the server that a request passes before it waits for an instance: client,
// wire and front end. Their work runs on the processors on which the instances compute. Requests
// pass in order, on as many cores as there are requests. If these and the instances' threads exceed
// the cores, all share the cores equally.
//
// A request alone on the machine takes more processor time than one among many. The difference is
// the waking of threads, which the requests in flight share.
type path struct {
	cost    float64 // s of processor time per request under load; 0: there is no path
	wake    float64 // s of additional processor time, which the requests in flight share
	cores   float64
	threads float64 // of an instance

	waiting  fifo[arrival]
	requests int     // requests in all waiting arrivals
	inFlight int     // sent and not answered
	left     float64 // s of processor time that the first request still needs
	speed    float64 // seconds of processor time per second for the first request, since `since`
	since    float64 // s
	ends     float64 // s, time at which the first request has passed
}

func (p *path) reset(c ServiceCurve) {
	p.waiting.reset()
	*p = path{cost: c.Path, wake: max(0, c.Overhead-c.Path), cores: float64(max(c.Cores, 1)), threads: float64(c.Threads), waiting: p.waiting, ends: math.Inf(1)}
}

// push adds requests that are sent now.
func (p *path) push(a arrival, now float64) {
	p.inFlight += a.requests
	if p.requests == 0 {
		p.left, p.since = p.work(), now
	}
	p.waiting.push(a)
	p.requests += a.requests
}

// work returns the processor time in seconds of the next request.
func (p *path) work() float64 { return p.cost + p.wake/float64(max(p.inFlight, 1)) }

// pop removes the first request, which has passed now.
func (p *path) pop(now float64) request {
	first := p.waiting.front()
	r := request{sent: first.at, at: now, rows: first.rows}
	if first.requests--; first.requests == 0 {
		p.waiting.pop()
	}
	p.requests--
	p.left, p.since = p.work(), now
	return r
}

// pace computes again when the first request will have passed, with the given number of busy
// instances. others are the cores that other models ask for. It returns the factor by which path and
// others slow the instances down.
//
// If more cores are asked for than there are, all have the same share of what they ask for (processor
// sharing; Kleinrock, Queueing Systems 2, 1976, chapter 4). The instances' times include that they
// slow each other down, so they are divided by that part.
func (p *path) pace(now float64, busy int, others float64) (slow float64) {
	if p.cost == 0 && others == 0 {
		return 1
	}
	computing := p.computing(busy)
	asked := computing + p.passing() + others
	if p.cost > 0 {
		p.left = max(0, p.left-(now-p.since)*p.speed)
		p.since, p.ends = now, math.Inf(1)
		p.speed = p.passing() * min(1, p.cores/asked)
		if p.requests > 0 {
			p.ends = now + p.left/p.speed
		}
	}
	return max(1, asked/p.cores) / max(1, computing/p.cores)
}

// demand returns the cores that instances and path ask for, with the given number of busy instances.
func (p *path) demand(busy int) float64 { return p.computing(busy) + p.passing() }

func (p *path) computing(busy int) float64 { return float64(busy) * p.threads }

// passing returns the cores on which requests pass; 0 without a path.
func (p *path) passing() float64 { return min(float64(p.requests), p.cores) }
