package belief

import (
	"math"
	"testing"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/predict"
	"tuner/search/posterior"
	"tuner/search/queuesim"
)

// A goodput is the simulated throughput times the share in time. A share below a hundredth counts as
// a hundredth.
func TestGoodputOfASimulation(t *testing.T) {
	t.Parallel()
	least := 300.0
	c := newCriteria(search.Goal{Objective: maximize(search.Term{Metric: "goodput_50ms", Weight: 1}),
		Constraints: []search.Constraint{{Metric: "goodput_20ms", Min: &least}}})
	r := queuesim.Result{Throughput: 400, Within: []float64{0.75, 0}}
	for name, want := range map[measure.Metric]float64{"goodput_50ms": 300, "goodput_20ms": 4} {
		if got := c.simulatedValue(name, r); got == nil || math.Abs(*got/want-1) > 1e-9 {
			t.Errorf("the simulation has a %s of %v, want %v", name, got, want)
		}
	}
	if got := c.TightestLatency(); got != 0.02 {
		t.Errorf("a batch may take %v s, want the lower of the goodputs' limits", got)
	}
}

// Every answer may be in time unless the fastest takes too long.
func TestGoodputIsBounded(t *testing.T) {
	t.Parallel()
	m := newMetric("goodput_50ms")
	for lone, want := range map[float64]float64{0.05: 400, 0.051: 4} {
		if got := m.bestGoodput(predict.Bound{Throughput: 400, Wait: 1, Lone: lone}); math.Abs(math.Exp(got)/want-1) > 1e-9 {
			t.Errorf("with a lone answer in %v s the goodput is at most %v, want %v", lone, math.Exp(got), want)
		}
	}
	if posterior.Direction("goodput_50ms") != 1 {
		t.Error("a faster machine has no higher goodput")
	}
}
