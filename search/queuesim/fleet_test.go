package queuesim

import (
	"math"
	"testing"
	"time"

	"tuner/measure"
)

// alone serves one request at a time in 10 ms, with a spread that makes service times vary.
var alone = ServiceCurve{Sizes: []int{1}, Alone: []float64{0.01}, Spread: 0.3}

func fleetOf(servers int, how Balancer, rate float64) Result {
	return new(Fleet).Simulate(servers, how, Batcher{Instances: 1, MaxBatch: 1}, alone, measure.Load{RequestRate: rate}, Options{Requests: 60_000, Seed: 7})
}

// fleetRate simulates servers in turn under a rate of independent requests.
func fleetRate(servers int, b Batcher, c ServiceCurve, rate float64) Result {
	return new(Fleet).Simulate(servers, RoundRobin, b, c, measure.Load{RequestRate: rate}, Options{Requests: 60_000, Seed: 7})
}

// A fleet of one is a server, whatever the balancer.
func TestFleetOfOneIsAServer(t *testing.T) {
	t.Parallel()
	want := Simulate(Batcher{Instances: 1, MaxBatch: 1}, alone, measure.Load{RequestRate: 60}, Options{Requests: 60_000, Seed: 7})
	for _, how := range Balancers() {
		got := fleetOf(1, how, 60)
		if math.Abs(got.Mean/want.Mean-1) > 0.05 || math.Abs(got.P99/want.P99-1) > 0.1 {
			t.Errorf("%s: mean %.4f p99 %.4f, a server has %.4f and %.4f", how, got.Mean, got.P99, want.Mean, want.P99)
		}
	}
}

// Random choices split a Poisson process into Poisson processes, so each server waits as one alone
// does: M/G/1 by Pollaczek and Khinchine, W = ρ s (1 + c²) / (2 (1 − ρ)).
func TestRandomFleetIsManyServers(t *testing.T) {
	t.Parallel()
	const servers, load, service = 4, 0.7, 0.01
	squared := math.Exp(alone.Spread*alone.Spread) - 1
	want := load * service * (1 + squared) / (2 * (1 - load))
	got := fleetOf(servers, Random, servers*load/service)
	if math.Abs(got.Queue/want-1) > 0.06 {
		t.Errorf("a request waits %.5f s, want %.5f s", got.Queue, want)
	}
}

// The more a balancer knows, the less a request waits.
func TestBalancersThatKnowMoreWaitLess(t *testing.T) {
	t.Parallel()
	random, turns, least := fleetOf(4, Random, 300), fleetOf(4, RoundRobin, 300), fleetOf(4, LeastRequests, 300)
	if !(random.Queue > 2*turns.Queue && turns.Queue > least.Queue) {
		t.Errorf("waits of %.5f s (random), %.5f s (round robin), %.5f s (least requests)", random.Queue, turns.Queue, least.Queue)
	}
}

// All requests that count are answered, also those of the last batch.
func TestFleetAnswersAll(t *testing.T) {
	t.Parallel()
	got := new(Fleet).Simulate(3, RoundRobin, Batcher{Instances: 2, MaxBatch: 8, Dynamic: true}, alone, measure.Load{RequestRate: 100},
		Options{Requests: 1000, Within: []float64{3600}})
	if got.Within[0] != 1 {
		t.Errorf("%v of the requests within an hour", got.Within[0])
	}
	if math.Abs(got.Throughput/100-1) > 0.15 {
		t.Errorf("throughput %.1f/s, want 100/s", got.Throughput)
	}
}

// steady are arrivals every half second.
type steady struct{ n int }

func (s *steady) Next() time.Duration {
	s.n++
	return time.Duration(s.n) * time.Second / 2
}

// A server is busy for a second with each request, and never idle from the first one on. The second one begins what
// counts, half a second later: what the server did before is no part of it.
func TestFleetIsBusySinceItCounts(t *testing.T) {
	t.Parallel()
	got := new(Fleet).Simulate(1, RoundRobin, Batcher{}, constant(1), measure.Load{RequestRate: 2}, Options{Requests: 4, Arrivals: &steady{}})
	if math.Abs(got.Busy-1) > 1e-9 {
		t.Errorf("%v of 1 instance are busy", got.Busy)
	}
}
