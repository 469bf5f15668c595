// Package queuesim predicts what a Triton server does with a load, from the time that a batch takes: an event simulation of the
// clients, the dynamic batcher and the instances. It is what the guided search believes of a configuration before it measures it.
//
// The batcher is Triton's, as engine/scheduler implements it: the same arrivals make the same batches. Priorities, queue policies
// and requests of different shapes are left out, since a campaign's load has none. The package measures nothing and knows no
// strategy.
package queuesim

import (
	"cmp"
	"time"

	"tuner/measure"
)

// Batcher is what a configuration says of instances and batching. Numbers below 1 count as 1.
type Batcher struct {
	Instances int
	MaxBatch  int           // inferences in an execution, at most (max_batch_size)
	Dynamic   bool          // requests are joined into batches; false: each is an execution of its own, and the rest is void
	Preferred []int         // preferred_batch_size, in any order; empty: MaxBatch alone
	Delay     time.Duration // how long the oldest request may wait for company (max_queue_delay); 0: never
}

// Options say how much is simulated.
type Options struct {
	Requests int    // that count, after the warm-up; 0: 2,000
	Seed     uint64 // of arrivals and service times: the same seed gives the same arrivals, whatever the batcher and the curve
}

const defaultRequests = 2000

// Result is what the clients and the server's statistics would show. It is zero for a client batch beyond MaxBatch, which the
// server refuses. A load beyond the server's capacity has no steady state: its latencies grow with Options.Requests.
type Result struct {
	Throughput               float64 // inferences/s
	Mean, P50, P90, P95, P99 float64 // s, of the requests' latencies
	Queue                    float64 // s per request, mean
	MeanBatch                float64 // inferences per execution
	Busy                     float64 // busy instances, mean over time
}

// Simulate predicts what a load does to a server: a closed loop, or an open loop with Poisson arrivals at the request rate. It is a
// function of its arguments.
func Simulate(b Batcher, c Curve, load measure.Load, o Options) Result {
	return new(Simulator).Simulate(b, c, load, o)
}

// Simulate is the function of that name, in memory that is used again.
func (s *Simulator) Simulate(b Batcher, c Curve, load measure.Load, o Options) Result {
	rows, requests := max(load.BatchSize, 1), max(cmp.Or(o.Requests, defaultRequests), 1)
	s.reset(b, c, o.Seed)
	if rows > s.batcher.max {
		return Result{}
	}
	skip := warmUp(requests, load.Concurrency)
	s.tally.reset(skip, requests)
	if s.closed = load.Concurrency > 0; s.closed {
		s.due.push(arrival{0, load.Concurrency, rows})
	} else {
		s.rate = load.RequestRate
		// Whoever comes later is behind all that run or are in a batch when the last one that counts is done.
		s.upcoming = skip + requests + (3*s.instances+2)*s.batcher.max/rows
		s.due.push(arrival{s.gap(), 1, rows})
	}
	s.run()
	return s.tally.result(s.now)
}

// warmUp is how many requests are left out before those that count: a quarter as many, and of each client of a closed loop at
// least two. Either loop begins with an empty queue, and a closed one with all its clients sending at once.
func warmUp(requests, clients int) int { return max(requests/4, 2*clients) }
