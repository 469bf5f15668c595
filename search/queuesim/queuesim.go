// Package queuesim predicts the behaviour of a Triton server under a load, from the time of a
// batch. It is an event simulation of the clients, the dynamic batcher and the instances. The
// guided search uses it as its prediction for a configuration before the measurement.
//
// The batcher is Triton's, as engine/scheduler implements it: the same arrivals make the same
// batches, also of requests of different shapes. Both wait for clients that come back by the same rule
// (engine/gathering). Priorities and queue policies are omitted, since a
// campaign's load has none. The package measures nothing and does not depend on strategies.
package queuesim

import (
	"math"
	"time"

	"tuner/measure"
)

// Batcher holds a configuration's settings for instances and batching. Numbers below 1 count as 1.
type Batcher struct {
	Instances int
	MaxBatch  int // most inferences in an execution (max_batch_size)
	// Dynamic: requests are joined into batches; false: each is an execution of its own, and the
	// fields below have no effect
	Dynamic   bool
	Preferred []int         // preferred_batch_size, in any order; empty: MaxBatch alone
	Delay     time.Duration // longest wait of the oldest request for others (max_queue_delay); 0: it never waits
}

// refuses reports whether the server refuses requests with so many inferences.
func (b Batcher) refuses(rows int) bool { return max(rows, 1) > max(b.MaxBatch, 1) }

// Options set the extent of a simulation.
type Options struct {
	Requests int // number counted after the warm-up; 0: 2,000
	// Arrivals are the instants of an open loop; nil: Poisson. A simulation takes what it needs of
	// them.
	Arrivals Arrivals
	// Ranks are those of the arrivals' kinds, repeated after the last: the share of the requests that
	// are of earlier kinds, and half of their own. So a sequence of kinds is simulated as it came,
	// also where padding joins some. nil: kinds are drawn by their shares.
	Ranks []float64
	// Within are limits on the latency, in s, whose shares are wanted.
	Within []float64
	Seed   uint64 // of arrivals and service times: the same seed gives the same arrivals, for any batcher and curve
}

// Arrivals yields the instants at which requests are due, as durations since the beginning, in
// ascending order and without end.
type Arrivals interface{ Next() time.Duration }

const defaultRequests = 2000

// Result holds the figures that clients and the server's statistics would show. It is zero for a
// client batch beyond MaxBatch, which the server refuses. A load beyond the server's capacity has
// no steady state: its latencies grow with Options.Requests.
type Result struct {
	Throughput               float64 // inferences/s
	Mean, P50, P90, P95, P99 float64 // s, of the requests' latencies
	Queue                    float64 // s per request, mean
	Path                     float64 // s of processor time per request on the path, mean
	MeanBatch                float64 // inferences per execution
	Busy                     float64 // busy instances, mean over time
	// Beyond is by how many doublings batches are larger than the largest size of the curve: the mean over the time
	// of the instances. MostBeyond is that of the largest batch. Of these times the curve says little.
	Beyond, MostBeyond float64
	// Within are the shares of the requests that were answered within Options.Within, 0..1.
	Within []float64
}

// Simulate predicts the result of a load on a server. The load is a closed loop, or an open loop
// whose arrivals are Poisson unless the options have others. It is a function of its arguments.
func Simulate(b Batcher, c ServiceCurve, load measure.Load, o Options) Result {
	return new(Simulator).Simulate(b, c, load, o)
}

// warmUp returns the number of requests that are omitted before the counted ones. It is a quarter
// of those, and at least two for each client of a closed loop. Either loop begins with an empty
// queue, and in a closed one all clients send at once.
func warmUp(requests, clients int) int { return max(requests/4, 2*clients) }

// BatchTime returns the mean time in s of a batch in its instance, by Little's law for the instances.
func (r Result) BatchTime() float64 { return r.Busy * r.MeanBatch / r.Throughput }

// Quantile returns a percentile of the latency in s, by its quantile (0..1). Between the percentiles of
// the result, and beyond, it is linear in −ln(1−q), like an exponential tail.
func (r Result) Quantile(q float64) float64 {
	known := [...]struct{ q, latency float64 }{{0.5, r.P50}, {0.9, r.P90}, {0.95, r.P95}, {0.99, r.P99}}
	i := 1
	for i < len(known)-1 && q > known[i].q {
		i++
	}
	a, b := known[i-1], known[i]
	at := func(q float64) float64 { return -math.Log1p(-q) }
	return a.latency + (b.latency-a.latency)*(at(q)-at(a.q))/(at(b.q)-at(a.q))
}
