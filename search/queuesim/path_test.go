package queuesim

import (
	"fmt"
	"testing"
	"time"

	"tuner/measure"
)

// In this closed loop a request takes 20 µs of a core outside the instances, plus 10 µs that the
// requests in flight share.
func TestPath(t *testing.T) {
	t.Parallel()
	const micro = 1e-6
	onCores := func(service float64, instances, threads int) ServiceCurve {
		c := ServiceCurve{Sizes: []int{1}, Alone: []float64{service * micro}, Spread: 0.05, Overhead: 30 * micro, Path: 20 * micro, Cores: 2, Threads: threads}
		if instances > 1 {
			c.Crowded = c.Alone
		}
		return c
	}
	for _, tc := range []struct {
		name                        string
		service                     float64 // µs
		instances, threads, clients int
		throughput                  float64 // inferences/s
	}{
		{"one client meets nobody", 70, 1, 1, 1, 1e6 / 100},
		{"two cores pass one request each", 1, 1, 0, 64, 2e6 / 20},
		{"a device computes beside them", 50, 1, 0, 64, 1e6 / 50},
		{"what computes takes part of the cores", 1, 1, 1, 64, 2e6 / 21},
		{"one core is left for the path", 100, 1, 1, 64, 1e6 / 100},
		{"instances give way to the path", 100, 2, 1, 64, 2e6 / 120},
		{"an instance on all cores does, too", 50, 1, 2, 64, 2e6 / 120},
	} {
		r := Simulate(Batcher{Instances: tc.instances}, onCores(tc.service, tc.instances, tc.threads), measure.Load{Concurrency: tc.clients}, Options{Requests: 20_000})
		check(t, tc.name+": throughput", r.Throughput, tc.throughput, 0.03)
		check(t, tc.name+": Little's law", r.Mean*r.Throughput, float64(tc.clients), 0.02)
	}
}

// A request takes 100 µs of a core outside the instances alone, and 20 among many. The difference
// is shared.
func TestFewShareLittle(t *testing.T) {
	t.Parallel()
	const micro = 1e-6
	c := ServiceCurve{Sizes: []int{1}, Alone: []float64{micro}, Spread: 0.05, Overhead: 100 * micro, Path: 20 * micro, Cores: 2}
	for clients, want := range map[int]float64{1: 1e6 / 101, 2: 2e6 / 61, 4: 2e6 / 40, 64: 2e6 / 21.25} {
		r := Simulate(Batcher{}, c, measure.Load{Concurrency: clients}, Options{Requests: 20_000})
		check(t, fmt.Sprintf("throughput of %d clients", clients), r.Throughput, want, 0.05)
		check(t, fmt.Sprintf("Little's law with %d clients", clients), r.Mean*r.Throughput, float64(clients), 0.02)
	}
	r := Simulate(Batcher{}, c, measure.Load{RequestRate: 100}, Options{Requests: 5000})
	check(t, "latency of an open loop in which a request is mostly alone", r.Mean, 101*micro, 0.02)
}

// In an open loop, requests that cannot pass wait before the server, whose queue is empty.
func TestPathOfAnOpenLoop(t *testing.T) {
	t.Parallel()
	c := ServiceCurve{Sizes: []int{1}, Alone: []float64{1e-6}, Spread: 0.05, Path: 1e-3, Cores: 1}
	// M/D/1 at half of the path's capacity
	r := Simulate(Batcher{}, c, measure.Load{RequestRate: 500}, Options{Requests: many})
	check(t, "wait and path", r.Mean, 1.5e-3, 0.03)
	if r.Queue > 1e-5 {
		t.Errorf("requests wait for %v s in the server", r.Queue)
	}
	check(t, "beyond its capacity", Simulate(Batcher{}, c, measure.Load{RequestRate: 2000}, Options{}).Throughput, 1000, 0.01)
}

// Requests that pass at the same time do the same work as those in order: throughput, Little's law and
// processor time are the same.
func TestSpreadPathDoesTheSameWork(t *testing.T) {
	t.Parallel()
	c := ServiceCurve{Sizes: []int{1}, Alone: []float64{5e-6}, Spread: 0.5, Overhead: 100e-6, Path: 20e-6, Cores: 2, Threads: 1}
	spread := c
	spread.PathSpread = 0.5
	for _, clients := range []int{1, 4, 64} {
		load, o := measure.Load{Concurrency: clients}, Options{Requests: 40_000}
		inOrder, together := Simulate(Batcher{}, c, load, o), Simulate(Batcher{}, spread, load, o)
		check(t, fmt.Sprintf("throughput of %d clients", clients), together.Throughput, inOrder.Throughput, 0.05)
		check(t, fmt.Sprintf("processor time with %d clients", clients), together.Path, 20e-6+80e-6/float64(clients), 0.02)
		check(t, fmt.Sprintf("Little's law with %d clients", clients), together.Mean*together.Throughput, float64(clients), 0.02)
		if clients > 4 && together.P99 < 1.5*inOrder.P99 {
			t.Errorf("p99 of %d clients is %g s, in order %g s", clients, together.P99, inOrder.P99)
		}
	}
}

// In an open loop on one core, requests that pass at the same time take s/(1 − ρ) on average, whatever the
// spread (M/G/1 with processor sharing; Kleinrock, Queueing Systems 2, 1976, §4.4).
func TestSpreadPathSharesItsCore(t *testing.T) {
	t.Parallel()
	for _, spread := range []float64{0.1, 0.6} {
		c := ServiceCurve{Sizes: []int{1}, Alone: []float64{1e-6}, Spread: 0.05, Path: 1e-3, PathSpread: spread, Cores: 1}
		r := Simulate(Batcher{}, c, measure.Load{RequestRate: 500}, Options{Requests: many})
		check(t, fmt.Sprintf("mean with a spread of %g", spread), r.Mean, 2e-3, 0.04)
	}
}

// Servers that share cores share them with the paths of all, too: three servers answer as much as the cores
// allow, and alone on as many cores each answers that.
func TestReplayWithPaths(t *testing.T) {
	t.Parallel()
	const n = 3000
	for _, spread := range []float64{0, 0.5} {
		c := ServiceCurve{Sizes: []int{1}, Alone: []float64{1e-5}, Path: 3e-5, PathSpread: spread, Cores: 2, Threads: 1}
		at := Instants{At: make([]time.Duration, n)}
		shared := new(Fleet).Replay(3, RoundRobin, single, c, at, 2, Options{})
		check(t, "three servers on two cores", shared.Throughput, 2/4e-5, 0.05)
		apart := new(Fleet).Replay(3, RoundRobin, single, c, at, 0, Options{})
		check(t, "three servers on two cores each", apart.Throughput, 3*2/4e-5, 0.05)
	}
}

// 3 s of processor time of which instances computed 1 s are 2 ms for each of 1,000 requests. A tenth of what was
// used is the least that counts.
func TestPathOf(t *testing.T) {
	t.Parallel()
	check := func(used, computed, requests, want float64) {
		t.Helper()
		if got, ok := PathOf(used, computed, requests); got != want || ok != (want > 0) {
			t.Errorf("%g s used, %g s computed for %g requests: %g, %t; want %g", used, computed, requests, got, ok, want)
		}
	}
	check(3, 1, 1000, 0.002)
	check(3, 2.8, 1000, 0)
	check(1, 2, 1000, 0)
	check(1, 0, 0, 0)
}
