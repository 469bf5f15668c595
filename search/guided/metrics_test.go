package guided

import (
	"testing"

	"tuner/measure"
	"tuner/search"
)

// The cost is predicted from the throughput. So a search for the lowest cost has the same beliefs
// as one for the highest throughput, and the same answer.
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

// No trial can distinguish two engines with equal, minimal memory, so the search ends.
func TestSearchForTheLeastMemoryEnds(t *testing.T) {
	t.Parallel()
	m := typical(4, 0.05)
	m.settings.Goal.Objective.Terms = []search.Term{{Metric: measure.Memory, Weight: 1}}
	g, events := m.run(t, 200)
	if g.statement().Why == "" {
		t.Errorf("the search goes on after %d trials", len(events))
	}
	if best := g.Ranked()[0]; !best.Point.Passes() || best.Measurement.Memory != 2e8 { // of one instance
		t.Errorf("the best takes %d bytes and passes: %t", best.Measurement.Memory, best.Point.Passes())
	}
}
