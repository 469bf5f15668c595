package guided

import (
	"math"
	"slices"
	"testing"

	"tuner/measure"
	"tuner/search"
)

// Before any service times are known, nothing is known of how much better something else may be.
func TestUnknownGain(t *testing.T) {
	t.Parallel()
	m := typical(1, 0.05)
	m.settings.Space.Facts.Base[search.KnobIntraOpThreads] = "3" // a default of its own
	g, _ := m.run(t, 3)
	st := g.Statement()
	if _, isOpen := g.Rivals(); st.Best == nil || st.Gain != nil || !isOpen {
		t.Errorf("gain %v, and nothing is open", st.Gain)
	}
	if g, _ := m.run(t, 100); g.Statement().Gain == nil {
		t.Error("the gain is not known in the end")
	}
}

// What is said of the limit and of the interval is one belief.
func TestClaimIsConsistent(t *testing.T) {
	t.Parallel()
	const limit = 0.02
	g, _ := typical(3, limit).run(t, 60)
	best := g.Statement().Best
	i := slices.IndexFunc(best.Values, func(v Value) bool { return v.Metric == measure.LatencyP99 })
	p99 := best.Values[i]
	deviation := math.Log(p99.Hi/p99.Lo) / 2 / 1.96
	if want := normal(math.Log(limit/p99.Value) / deviation); math.Abs(best.Feasible-want) > 1e-9 {
		t.Errorf("p99 is %+v, and within %v with a probability of %.3f, want %.3f", p99.Estimate, limit, best.Feasible, want)
	}
}
