package guided

import (
	"math"
	"testing"

	"tuner/measure"
	"tuner/search"
	"tuner/search/queuesim"
)

// A percentile that the simulation does not tell lies where an exponential tail has it: −ln(1−q) seconds of one with a mean of 1 s.
func TestTailOfAnExponential(t *testing.T) {
	t.Parallel()
	at := func(q float64) float64 { return -math.Log(1 - q) }
	r := queuesim.Result{P50: at(0.5), P90: at(0.9), P95: at(0.95), P99: at(0.99)}
	for _, q := range []float64{0.25, 0.5, 0.75, 0.9, 0.925, 0.95, 0.97, 0.99, 0.999} {
		if got := tail(r, q); math.Abs(got-at(q)) > 1e-9 {
			t.Errorf("the quantile %v is %v, want %v", q, got, at(q))
		}
	}
}

// The cost is predicted from the throughput: a search for the cheapest believes of every cell what one for the highest throughput does,
// and ends at the same one.
func TestCheapestIsFastest(t *testing.T) {
	t.Parallel()
	fast, cheap := typical(7, 0.05), typical(7, 0.05)
	cheap.settings.Goal.Objective.Terms = []search.Term{{Metric: measure.Cost, Weight: 1}}
	cheap.settings.Goal.Price = 0.36
	a, events := fast.run(t, 120)
	b, others := cheap.run(t, 120)
	best, cheapest := a.Ranked()[0], b.Ranked()[0]
	if len(events) != len(others) || best.Candidate.Key() != cheapest.Candidate.Key() || best.Load != cheapest.Load {
		t.Errorf("after %d and %d trials the fastest is %v at %v, the cheapest %v at %v", len(events), len(others), best.Candidate, best.Load, cheapest.Candidate, cheapest.Load)
	}
}

// Whatever makes a machine faster makes throughput higher and latencies lower, so a goal on both errs by the sum of the deviations; what a pool's
// memory is known by is not what trials of its cells reduce.
func TestVariancesOfAScore(t *testing.T) {
	t.Parallel()
	g := newSmall(t, func(s *search.Settings) {
		s.Goal.Objective.Terms = []search.Term{{Metric: measure.Throughput, Weight: 2}, {Metric: measure.LatencyP99, Weight: 1}, {Metric: measure.Memory, Weight: 1},
			{Metric: measure.Energy, Weight: 1}}
	})
	for _, m := range g.models {
		m.isKnown = true
	}
	deviations := map[measure.Metric]float64{measure.Throughput: 0.1, measure.LatencyP99: 0.3, measure.Memory: 0.02, measure.Energy: 0.04}
	all := g.variances(func(k int) float64 { return deviations[g.models[k].metric] * deviations[g.models[k].metric] })
	near(t, "all", all, 0.5*0.5+0.04*0.04+0.02*0.02)
}

// Two engines that take as little memory as each other are told apart by no trial: the search ends.
func TestSearchForTheLeastMemoryEnds(t *testing.T) {
	t.Parallel()
	m := typical(4, 0.05)
	m.settings.Goal.Objective.Terms = []search.Term{{Metric: measure.Memory, Weight: 1}}
	g, events := m.run(t, 200)
	if g.Statement().Why == "" {
		t.Errorf("the search goes on after %d trials", len(events))
	}
	if best := g.Ranked()[0]; !best.Point.Passes() || best.Measurement.Memory != 2e8 { // of one instance
		t.Errorf("the best takes %d bytes and passes: %t", best.Measurement.Memory, best.Point.Passes())
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s is %.12f, want %.12f", what, got, want)
	}
}
