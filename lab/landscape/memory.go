package landscape

import (
	"math"
	"math/rand/v2"
	"slices"

	"tuner/measure"
	"tuner/measure/stats"
)

// memory simulates a server in a closed loop whose service times depend on more than the batch.
// They rise with the number of waiting requests, which compete for the memory and the cores. They
// rise with the utilization of the instance in the last half second: its core gets warm and its
// clock falls. The first batch after a pause finds cold caches.
type memory struct {
	setup
	wire float64
	base func(s setup, concurrency, batch int) float64
}

// The parameters of these effects.
const (
	waitingMost = 0.40  // factor minus 1 with many requests waiting
	waitingHalf = 8.0   // waiting requests for half of it
	warmest     = 1.25  // factor of an instance that is always busy
	warmTime    = 0.5   // s
	coldFactor  = 1.5   // of the first batch after a pause
	coldPause   = 0.005 // s
	batchSpread = 0.08  // standard deviation of the log of a batch's time
)

// worker is an instance.
type worker struct {
	until float64   // s, end of its batch; +Inf without one
	since float64   // s, end of its last batch
	warm  float64   // recent share of busy time
	batch []float64 // send times of its batch's requests
}

// run is the state of a simulation.
type run struct {
	memory
	random   *rand.Rand
	workers  []worker
	arriving []float64 // arrival times of requests at the server, ascending
	waiting  []float64 // arrival times of the waiting requests
	now      float64
	served   []float64 // latencies
	queued   float64   // s, summed over requests
	batches  int
	busy     float64 // s, summed over instances
}

// serve runs until it has the figures of a few thousand requests, after a tenth more for the start.
func (m memory) serve(load measure.Load, seed uint64) outcome {
	r := &run{memory: m, random: rand.New(rand.NewPCG(seed, 3)), workers: make([]worker, m.instances), arriving: make([]float64, load.Concurrency)}
	for i := range r.workers {
		r.workers[i].until = math.Inf(1)
	}
	requests := max(3000, 20*load.Concurrency)
	for len(r.served) < requests/10 {
		r.step()
	}
	begin := r.now
	r.served, r.queued, r.batches, r.busy = nil, 0, 0, 0
	for len(r.served) < requests {
		r.step()
	}
	n := float64(len(r.served))
	slices.Sort(r.served)
	at := func(level float64) float64 { return stats.Quantile(r.served, level) }
	return outcome{throughput: n / (r.now - begin), latency: at, queue: r.queued / n, batch: n / float64(max(1, r.batches)), busy: r.busy / (r.now - begin)}
}

// step processes the next event: an arrival, the end of a batch, or the end of the oldest request's
// delay.
func (r *run) step() {
	next := math.Inf(1)
	if len(r.arriving) > 0 {
		next = r.arriving[0]
	}
	for _, w := range r.workers {
		next = min(next, w.until)
	}
	if len(r.waiting) > 0 && r.idle() >= 0 {
		next = min(next, r.waiting[0]+r.delay.Seconds())
	}
	r.now = max(r.now, next)
	for i := range r.workers {
		if w := &r.workers[i]; w.until <= r.now {
			r.end(w)
		}
	}
	for len(r.arriving) > 0 && r.arriving[0] <= r.now {
		r.waiting, r.arriving = append(r.waiting, r.arriving[0]), r.arriving[1:]
	}
	for i := r.idle(); i >= 0 && r.isDue(); i = r.idle() {
		r.begin(&r.workers[i])
	}
}

// idle returns the instance without a batch that has rested longest; -1 without one.
func (r *run) idle() int {
	best := -1
	for i, w := range r.workers {
		if math.IsInf(w.until, 1) && (best < 0 || w.since < r.workers[best].since) {
			best = i
		}
	}
	return best
}

// isDue reports whether a batch must begin.
func (r *run) isDue() bool {
	return len(r.waiting) >= max(1, r.B) || len(r.waiting) > 0 && r.now >= r.waiting[0]+r.delay.Seconds()
}

// begin gives an instance as many of the waiting requests as fit.
func (r *run) begin(w *worker) {
	n := min(len(r.waiting), max(1, r.B))
	w.batch, r.waiting = slices.Clone(r.waiting[:n]), r.waiting[n:]
	busy := 1
	for _, other := range r.workers {
		if !math.IsInf(other.until, 1) {
			busy++
		}
	}
	pause := r.now - w.since
	w.warm *= math.Exp(-pause / warmTime)
	waiting := float64(len(r.waiting))
	t := r.base(r.setup, busy, n) * (1 + waitingMost*waiting/(waiting+waitingHalf)) * (1 + (warmest-1)*w.warm)
	if pause > coldPause {
		t *= coldFactor
	}
	t *= math.Exp(batchSpread*r.random.NormFloat64() - batchSpread*batchSpread/2)
	w.warm = 1 - (1-w.warm)*math.Exp(-t/warmTime)
	w.until = r.now + t
	r.batches++
	r.busy += t
	for _, sent := range w.batch {
		r.queued += r.now - sent
	}
}

// end answers the requests of a batch, whose clients send again at once.
func (r *run) end(w *worker) {
	for _, sent := range w.batch {
		r.served = append(r.served, w.until-sent+r.wire)
		r.arriving = append(r.arriving, w.until+r.wire)
	}
	w.since, w.until = w.until, math.Inf(1)
}
