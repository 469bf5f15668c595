package queuesim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tuner/measure"
)

// many requests make the mean of a wait exact to 1 or 2 %.
const many = 100_000

// exponential makes all execution times of a simulator exponential.
func exponential(s *Simulator) *Simulator {
	s.factor = rand.New(rand.NewPCG(0, 1)).ExpFloat64
	return s
}

func check(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got/want-1) <= tolerance) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// Textbook queues: Poisson arrivals at rate ρ per server, service times with mean 1, no batching.
func TestQueues(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		servers   int
		rho       float64
		simulator *Simulator
		wait      float64 // mean, in the queue
	}{
		{"M/M/1", 1, 0.5, exponential(new(Simulator)), 1}, // ρ/(1−ρ)
		{"M/M/1", 1, 0.75, exponential(new(Simulator)), 3},
		{"M/D/1", 1, 0.5, new(Simulator), 0.5}, // ρ/(2(1−ρ)), half of M/M/1's
		{"M/D/1", 1, 0.75, new(Simulator), 1.5},
		{"M/M/3", 3, 0.75, exponential(new(Simulator)), erlangC(3, 2.25) / (3 - 2.25)},
	} {
		name := fmt.Sprintf("%s at %v", tc.name, tc.rho)
		rate := tc.rho * float64(tc.servers)
		r := tc.simulator.Simulate(Batcher{Instances: tc.servers}, constant(1), measure.Load{RequestRate: rate}, Options{Requests: many})
		check(t, name+": wait", r.Queue, tc.wait, 0.04)
		check(t, name+": latency", r.Mean, tc.wait+1, 0.03)
		check(t, name+": throughput", r.Throughput, rate, 0.01)
		check(t, name+": busy", r.Busy, rate, 0.01)
		if tc.name == "M/M/1" { // the latency is exponential with mean 1/(1−ρ)
			mean := 1 / (1 - tc.rho)
			check(t, name+": p50", r.P50, mean*math.Ln2, 0.03)
			check(t, name+": p90", r.P90, mean*math.Log(10), 0.04)
			check(t, name+": p95", r.P95, mean*math.Log(20), 0.05)
			check(t, name+": p99", r.P99, mean*math.Log(100), 0.06)
		}
	}
}

// erlangC returns the probability of waiting for one of n servers with an offered load of a.
func erlangC(n int, a float64) float64 {
	term, sum := 1.0, 0.0 // aᵏ/k!
	for k := range n {
		sum += term
		term *= a / float64(k+1)
	}
	last := term * float64(n) / (float64(n) - a)
	return last / (sum + last)
}

// The server takes all waiting requests, with batches of n in α·n + τ. Y. Inoue gives an upper
// bound of the mean latency (Queueing analysis of GPU-based inference servers with dynamic
// batching, 2021, theorem 2). He finds it to be within a few percent.
func TestInoueBound(t *testing.T) {
	t.Parallel()
	const alpha, tau = 0.001, 0.004
	for _, rho := range []float64{0.02, 0.2, 0.5, 0.8, 0.9} {
		lambda := rho / alpha
		bound0 := (alpha + tau) / (2 * (1 - rho)) * (1 + 2*lambda*tau + (1-lambda*tau)/(1+rho))
		bound1 := 1.5*tau/(1-rho) + alpha/2*(rho+2)/(1-rho*rho)
		r := Simulate(Batcher{MaxBatch: 1000, Dynamic: true}, affine(tau*1000, alpha*1000), measure.Load{RequestRate: lambda}, Options{Requests: many})
		if bound := min(bound0, bound1); r.Mean > 1.01*bound || r.Mean < 0.9*bound {
			t.Errorf("λα = %v: mean latency %v, want at most %v and not far below", rho, r.Mean, bound)
		}
	}
}

// The mean of the log-normal service times is the curve's, and their spread is the requested one.
func TestSpread(t *testing.T) {
	t.Parallel()
	curve := constant(1)
	curve.Spread = 0.5
	r := Simulate(Batcher{}, curve, measure.Load{Concurrency: 1}, Options{Requests: many})
	check(t, "mean", r.Mean, 1, 0.01)
	check(t, "median", r.P50, math.Exp(-0.5*0.5/2), 0.01)
	check(t, "p90", r.P90, math.Exp(1.2816*0.5-0.5*0.5/2), 0.01)
}

// loops yields closed loops of many kinds, for properties that hold for all.
func loops(yield func(name string, b Batcher, c ServiceCurve, load measure.Load)) {
	for _, instances := range []int{1, 2, 4} {
		for _, batch := range []int{1, 4, 8} {
			for _, delay := range []time.Duration{0, 3 * time.Millisecond} {
				for _, preferred := range [][]int{nil, {3}} {
					for _, clients := range []int{1, 3, 8, 16, 64} {
						if len(preferred) > 0 && batch < 4 {
							continue
						}
						b := Batcher{instances, batch, batch > 1, preferred, delay}
						c := ServiceCurve{Sizes: []int{1, 4, 8}, Alone: []float64{0.003, 0.006, 0.010}, Spread: 0.2, Overhead: 3e-4}
						if instances > 1 {
							c.Crowded = []float64{0.004, 0.010, 0.019}
						}
						yield(fmt.Sprintf("%+v, %d clients", b, clients), b, c, measure.Load{Concurrency: clients, BatchSize: 1})
					}
				}
			}
		}
	}
}

// Bounds of operational analysis (Denning and Buzen 1978): Little's law, and two upper bounds of
// the throughput. One is that of clients that never wait, the other that of instances that never
// idle.
func TestBoundsOfClosedLoops(t *testing.T) {
	t.Parallel()
	var s Simulator
	loops(func(name string, b Batcher, c ServiceCurve, load measure.Load) {
		r := s.Simulate(b, c, load, Options{Requests: 4000})
		check(t, name+": throughput × latency", r.Throughput*r.Mean, float64(load.Concurrency), 0.02)
		fastest := c.Time(1, 1, b.Instances) + c.Overhead
		if limit := float64(load.Concurrency) / fastest; r.Throughput > 1.02*limit {
			t.Errorf("%s: throughput %v, at most %v with a latency of no less than %v", name, r.Throughput, limit, fastest)
		}
		capacity := 0.0
		for n := range b.MaxBatch {
			for busy := range b.Instances { // each busy one executes a batch of n+1 in this time
				capacity = max(capacity, float64((busy+1)*(n+1))/c.Time(n+1, busy+1, b.Instances))
			}
		}
		if r.Throughput > 1.02*capacity {
			t.Errorf("%s: throughput %v is beyond the capacity of %v", name, r.Throughput, capacity)
		}
		if r.Busy > float64(b.Instances)+1e-9 || r.MeanBatch > float64(b.MaxBatch) || r.P50 > r.P90 || r.P90 > r.P95 || r.P95 > r.P99 {
			t.Errorf("%s: %+v", name, r)
		}
	})
}

// With many clients all batches are full and all instances are busy.
func TestSaturation(t *testing.T) {
	t.Parallel()
	c := ServiceCurve{Sizes: []int{1, 8}, Alone: []float64{0.002, 0.005}, Crowded: []float64{0.003, 0.009}, Spread: 0.1, Overhead: 1e-4}
	r := Simulate(Batcher{Instances: 3, MaxBatch: 8, Dynamic: true}, c, measure.Load{Concurrency: 96, BatchSize: 1}, Options{Requests: 50_000})
	check(t, "throughput", r.Throughput, 3*8/0.009, 0.01)
	check(t, "mean batch", r.MeanBatch, 8, 1e-9)
	check(t, "busy", r.Busy, 3, 1e-6)
}

// More clients do not reduce the throughput. (With a preferred size or a delay they may.)
func TestThroughputGrowsWithClients(t *testing.T) {
	t.Parallel()
	var s Simulator
	for _, instances := range []int{1, 2} {
		c := affine(2, 1)
		c.Spread, c.Overhead = 0.05, 5e-4
		last := 0.0
		for clients := 1; clients <= 64; clients++ {
			r := s.Simulate(Batcher{Instances: instances, MaxBatch: 8, Dynamic: true}, c, measure.Load{Concurrency: clients, BatchSize: 1},
				Options{Requests: 8000})
			if r.Throughput < 0.99*last {
				t.Errorf("%d instances: throughput %v at %d clients, %v with one less", instances, r.Throughput, clients, last)
			}
			last = r.Throughput
		}
	}
}

// Beyond the capacity, an open loop has the throughput of full batches.
func TestOverload(t *testing.T) {
	t.Parallel()
	r := Simulate(Batcher{Instances: 2, MaxBatch: 8, Dynamic: true}, affine(2, 1), measure.Load{RequestRate: 1e5, BatchSize: 1}, Options{})
	check(t, "throughput", r.Throughput, 2*8/0.010, 0.01)
	if r.Mean < 0.1 {
		t.Errorf("mean latency %v, want it to grow with the queue", r.Mean)
	}
}
