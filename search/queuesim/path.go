package queuesim

import "math"

// path is what a request passes before it waits for an instance: the client that sends it, the wire and the front end, whose work the processors do that
// the instances compute on. Requests pass in order, on as many cores as there are requests; when these and the instances' threads are more than the
// cores, all share them alike. What one takes that is alone on the machine, beyond what it takes among many, is threads that wake up, which those in
// flight share.
type path struct {
	cost    float64 // s of processor time that a request takes among many; 0: there is no path
	wake    float64 // s of processor time beside it, that those in flight share
	cores   float64
	threads float64 // of an instance

	waiting  fifo[arrival]
	requests int     // in all that is waiting
	inFlight int     // that were sent and are not answered
	left     float64 // s of processor time, of the first request
	speed    float64 // seconds of processor time per second that go into it, since
	since    float64 // s
	ends     float64 // s, when the first request is through
}

func (p *path) reset(c Curve) {
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

// work is the processor time in seconds that the next request takes.
func (p *path) work() float64 { return p.cost + p.wake/float64(max(p.inFlight, 1)) }

// pop takes the first request, which is through now.
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

// pace computes anew when the first request is through, with so many instances busy, and returns by how much the path slows these down.
func (p *path) pace(now float64, busy int) (slow float64) {
	if p.cost == 0 {
		return 1
	}
	p.left = max(0, p.left-(now-p.since)*p.speed)
	p.since, p.ends = now, math.Inf(1)
	computing, passing := float64(busy)*p.threads, min(float64(p.requests), p.cores)
	p.speed = passing * min(1, p.cores/(computing+passing))
	if p.requests > 0 {
		p.ends = now + p.left/p.speed
	}
	return max(1, (computing+passing)/p.cores) / max(1, computing/p.cores)
}
