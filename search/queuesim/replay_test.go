package queuesim

import (
	"math"
	"slices"
	"testing"
	"time"

	"tuner/measure/arrivals"
)

// poisson returns n instants of a Poisson process.
func poisson(t *testing.T, rate float64, n int) []time.Duration {
	t.Helper()
	s, err := arrivals.Poisson(rate, 5)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]time.Duration, n)
	for i := range list {
		list[i] = s.Next()
	}
	return list
}

var single = Batcher{Instances: 1, MaxBatch: 1}

// Requests that never meet have the time of a batch, whatever the number of servers and cores.
func TestReplayOfSingleRequests(t *testing.T) {
	t.Parallel()
	c := ServiceCurve{Sizes: []int{1}, Alone: []float64{0.01}, Threads: 1, Overhead: 0.001}
	at := []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}
	for _, cores := range []int{0, 1, 4} {
		got := new(Fleet).Replay(3, RoundRobin, single, c, Instants{At: at}, cores, Options{Within: []float64{0.0105, 0.0115}})
		if math.Abs(got.P99-0.011) > 1e-9 || got.Within[0] != 0 || got.Within[1] != 1 {
			t.Errorf("%d cores: p99 %g, within %v; want 11 ms", cores, got.P99, got.Within)
		}
	}
}

// A server with a curve of its own serves as servers do that all have it, and the others as before.
func TestReplayOfUnequalServers(t *testing.T) {
	t.Parallel()
	quick := ServiceCurve{Sizes: []int{1}, Alone: []float64{0.005}, Spread: 0.3, Overhead: 0.002, Path: 0.001, PathSpread: 0.3, Threads: 1, Cores: 2}
	slow := quick
	slow.Alone, slow.Overhead, slow.Path = []float64{0.008}, 0.003, 0.002
	r := Instants{At: poisson(t, 100, 5000), Servers: make([]int, 5000)}
	for i := range r.Servers {
		r.Servers[i] = i % 2
	}
	for _, cores := range []int{0, 4} {
		replay := func(c ServiceCurve, curves ...ServiceCurve) Result {
			r.Curves = curves
			return new(Fleet).Replay(2, Random, single, c, r, cores, Options{Seed: 7})
		}
		for _, c := range []ServiceCurve{quick, slow} {
			if got, want := replay(ServiceCurve{Sizes: []int{1}, Alone: []float64{1}}, c, c), replay(c); got.P50 != want.P50 || got.P99 != want.P99 || got.Path != want.Path {
				t.Errorf("%d cores: %+v with curves of their own, and %+v with the same one", cores, got, want)
			}
		}
		if got, low, high := replay(quick, quick, slow).Mean, replay(quick).Mean, replay(slow).Mean; cores == 0 && math.Abs(got/(low/2+high/2)-1) > 0.01 || got <= low || got >= high {
			t.Errorf("%d cores: a mean of %g, and of equal servers %g and %g", cores, got, low, high)
		}
	}
}

// Two servers with a request each need twice the time on one core, and not on two.
func TestReplaySharesCores(t *testing.T) {
	t.Parallel()
	c := ServiceCurve{Sizes: []int{1}, Alone: []float64{0.01}, Threads: 1}
	for cores, want := range map[int]float64{0: 0.01, 1: 0.02, 2: 0.01} {
		got := new(Fleet).Replay(2, RoundRobin, single, c, Instants{At: []time.Duration{0, 0}}, cores, Options{})
		if math.Abs(got.Mean-want) > 1e-9 {
			t.Errorf("%d cores: mean %g, want %g", cores, got.Mean, want)
		}
	}
}

// On one core that all share, any number of servers with a thread each are one server that shares its
// core among all requests that are first in a queue. The mean number of busy cores is the offered work.
func TestReplayDoesAllWork(t *testing.T) {
	t.Parallel()
	c := ServiceCurve{Sizes: []int{1}, Alone: []float64{0.01}, Spread: 0.1, Threads: 1}
	at := poisson(t, 60, 30_000)
	shared := new(Fleet).Replay(3, LeastRequests, single, c, Instants{At: at}, 1, Options{Seed: 3, Within: []float64{3600}})
	apart := new(Fleet).Replay(3, LeastRequests, single, c, Instants{At: at}, 0, Options{Seed: 3, Within: []float64{3600}})
	if shared.Within[0] != 1 || apart.Within[0] != 1 {
		t.Error("requests are lost")
	}
	// M/G/1 with processor sharing has the mean s/(1 − ρ) = 25 ms, one of first come first served 17.5 ms; three
	// queues that share lie between.
	if shared.Mean < 0.0165 || shared.Mean > 0.026 || apart.Mean > 0.013 {
		t.Errorf("means of %.4f s on one core and %.4f s on three", shared.Mean, apart.Mean)
	}
}

// With cores for all, a replay is the simulation of the same instants.
func TestReplayAgreesWithSimulate(t *testing.T) {
	t.Parallel()
	b := Batcher{Instances: 2, MaxBatch: 8, Dynamic: true}
	c := ServiceCurve{Sizes: []int{1, 8}, Alone: []float64{0.004, 0.016}, Spread: 0.1}
	at := poisson(t, 900, 60_000)
	want := fleetRate(3, b, c, 900)
	got := new(Fleet).Replay(3, RoundRobin, b, c, Instants{At: at}, 6, Options{Seed: 7})
	if math.Abs(got.Mean/want.Mean-1) > 0.05 || math.Abs(got.P99/want.P99-1) > 0.1 {
		t.Errorf("mean %.5f p99 %.5f, the steady state has %.5f and %.5f", got.Mean, got.P99, want.Mean, want.P99)
	}
}

// A busy instance of another server slows down as one of the same server does, and cores that are shared do so
// beyond that: one request each on two servers with two instances, which slow each other from 10 to 12 ms, and
// three such requests on two cores.
func TestReplayCrowds(t *testing.T) {
	t.Parallel()
	c := ServiceCurve{Sizes: []int{1}, Alone: []float64{0.010}, Crowded: []float64{0.012}, Threads: 1}
	b := Batcher{Instances: 2, MaxBatch: 1}
	for _, x := range []struct {
		servers, requests, cores int
		want                     float64
	}{{1, 2, 2, 0.012}, {2, 2, 2, 0.012}, {2, 2, 0, 0.010}, {3, 3, 2, 0.018}, {3, 3, 4, 0.012}} {
		got := new(Fleet).Replay(x.servers, RoundRobin, b, c, Instants{At: make([]time.Duration, x.requests)}, x.cores, Options{})
		if math.Abs(got.Mean-x.want) > 1e-9 {
			t.Errorf("%d requests on %d servers and %d cores: mean %g, want %g", x.requests, x.servers, x.cores, got.Mean, x.want)
		}
	}
}

// Requests go to the servers that the caller names, and a replay says which the balancer chose: the same servers are
// the same replay.
func TestReplayOfGivenServers(t *testing.T) {
	t.Parallel()
	c := ServiceCurve{Sizes: []int{1}, Alone: []float64{0.01}, Spread: 0.3, Threads: 1}
	at := poisson(t, 200, 3000)
	for _, cores := range []int{0, 2} {
		var f Fleet
		want := f.Replay(3, LeastRequests, single, c, Instants{At: at}, cores, Options{Seed: 3})
		chosen := slices.Clone(f.Chosen())
		if len(chosen) != len(at) || slices.Min(chosen) != 0 || slices.Max(chosen) != 2 {
			t.Fatalf("%d of %d requests have a server", len(chosen), len(at))
		}
		if got := f.Replay(3, Random, single, c, Instants{At: at, Servers: chosen}, cores, Options{Seed: 3}); got.Mean != want.Mean || got.P99 != want.P99 {
			t.Errorf("%d cores: %+v, want %+v", cores, got, want)
		}
		apart := f.Replay(3, Random, single, c, Instants{At: at[:30], Servers: make([]int, 30)}, cores, Options{Seed: 3})
		alone := f.Replay(1, Random, single, c, Instants{At: at[:30]}, cores, Options{Seed: 3})
		if apart.Mean != alone.Mean {
			t.Errorf("%d cores: all requests to one of three servers take %g, to one alone %g", cores, apart.Mean, alone.Mean)
		}
	}
}

// A sender takes its part of the cores: none where there are enough, and otherwise as much as a thread of an instance
// does for each core that it asks for.
func TestReplayWithASender(t *testing.T) {
	t.Parallel()
	c := ServiceCurve{Sizes: []int{1}, Alone: []float64{0.01}, Threads: 1, Cores: 1}
	for _, x := range []struct {
		cores        int
		sender, want float64
	}{{0, 0, 0.01}, {0, 0.5, 0.015}, {1, 0.5, 0.015}, {2, 0.5, 0.01}, {2, 1.5, 0.0125}} {
		got := new(Fleet).Replay(1, RoundRobin, single, c, Instants{At: []time.Duration{0, time.Second}, Sender: x.sender}, x.cores, Options{})
		if math.Abs(got.Mean-x.want) > 1e-9 {
			t.Errorf("%d cores and a sender on %g: mean %g, want %g", x.cores, x.sender, got.Mean, x.want)
		}
	}
}
