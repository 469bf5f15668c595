package guided

import (
	"math"
	"testing"
	"time"

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
	if value := b.Statement().Best.Values[0]; value.Metric != measure.Cost || !(value.Lo < value.Value && value.Value < value.Hi) {
		t.Errorf("the statement is of %+v, want the cost", value)
	}
}

// A quarter of the time of two cores is half a second of each second. Beside one second of work that is a third of what was wanted; where the work is
// unknown, it is a quarter.
func TestStolenIsOfWhatWasWanted(t *testing.T) {
	t.Parallel()
	g := newSmall(t, func(s *search.Settings) { s.Space.Facts.Cores = 2 })
	w := measure.Window{Duration: time.Second, Steal: 0.25, EngineCPU: 800 * time.Millisecond, ClientCPU: 200 * time.Millisecond}
	near(t, "one busy core", g.stolen([]measure.Window{w}), 1.0/3)
	w.EngineCPU, w.ClientCPU = 0, 0
	near(t, "unknown", g.stolen([]measure.Window{w, w}), 0.25)
	near(t, "no window", g.stolen(nil), 0)
}
