package guided

import (
	"slices"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
)

// Larger batches than one that misses the limit on latencies cannot keep it, and a batch must not take a large part of the budget.
func TestLongestBatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits []search.Constraint
		budget time.Duration
		want   time.Duration
	}{
		"nothing bounds it":      {nil, 0, 0},
		"the budget":             {nil, 100 * time.Second, 500 * time.Millisecond},
		"the tightest limit":     {[]search.Constraint{atMost(measure.LatencyP99, 0.05), atMost(measure.LatencyAvg, 0.02)}, 100 * time.Second, 40 * time.Millisecond},
		"a limit without budget": {[]search.Constraint{atMost(measure.LatencyP99, 0.05)}, 0, 100 * time.Millisecond},
		"the median is of any":   {[]search.Constraint{atMost(measure.LatencyP50, 0.05)}, 0, 0},
		"memory is no time":      {[]search.Constraint{atMost(measure.Memory, 1e9)}, 0, 0},
	} {
		g := newSmall(t, func(s *search.Settings) { s.Goal.Constraints, s.Budget.Time = c.limits, c.budget })
		if got := g.longest(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A service trial that left out what takes too long rules out nothing: larger batches serve at loads where they are small, and the best is found.
func TestLongBatchesAreLeftOut(t *testing.T) {
	t.Parallel()
	const limit = 0.01
	m := typical(1, limit)
	g, events := m.run(t, 200)
	isCut := func(e search.Event) bool {
		return e.Trial.Phase == search.PhaseService && len(e.Measurement.Windows) < len(e.Trial.Sizes)
	}
	if !slices.ContainsFunc(events, isCut) {
		t.Error("no service trial was cut")
	}
	for _, p := range g.pools {
		for i := range p.batchers {
			if p.isDead(setting{i, 1}) {
				t.Errorf("%v is out at one request in flight", p.batchers[i].candidate)
			}
		}
	}
	if regret := m.regret(t, g, limit); regret > 0.05 {
		t.Errorf("the answer misses %.3f of the best", regret)
	}
}
