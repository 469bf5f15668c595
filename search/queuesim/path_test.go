package queuesim

import (
	"fmt"
	"testing"

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
