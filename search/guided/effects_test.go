package guided

import (
	"math"
	"slices"
	"sync"
	"testing"

	"tuner/measure"
	"tuner/search"
)

// exact returns a machine whose truth is the simulation of its service times.
func exact(limit float64) machine {
	return machine{settings: small(limit), seed: 1, noise: 0.01, simulated: &sync.Map{}}
}

// mostWith returns the highest true throughput of any candidate with a knob's value at the highest
// load. It is the best without limits, since in a closed loop throughput does not fall with
// concurrency.
func (m machine) mostWith(g *Guided, knob string, v search.Value) float64 {
	candidates := m.settings.Space.Candidates().All()
	most := 0.0
	for _, c := range candidates {
		if m.settings.Space.Value(c, knob) == v {
			x, _, _ := m.truth(g, c, m.settings.Space.Load.At(64))
			most = max(most, x)
		}
	}
	return most
}

// The reported effect of a value is near the truth, which is the best of all with the value, for
// any measurements of it.
func TestEffectsAreTheTruth(t *testing.T) {
	t.Parallel()
	m := exact(10)
	g, _ := m.run(t, 120)
	winner := g.Ranked()[0].Candidate
	effects := g.Effects(winner)
	if len(effects) != len(m.settings.Space.Knobs) {
		t.Errorf("%d knobs have effects, want %d", len(effects), len(m.settings.Space.Knobs))
	}
	for _, k := range effects {
		chosen := m.mostWith(g, k.Knob, k.Chosen)
		for _, e := range k.Others {
			want := m.mostWith(g, k.Knob, e.Value)/chosen - 1
			switch {
			case e.Basis == search.BasisBound:
				if want > e.Change.Hi+0.02 {
					t.Errorf("%s %s instead of %s: at most %+v, it is %.3f", k.Knob, e.Value, k.Chosen, e.Change, want)
				}
			case len(e.Misses) > 0 || math.Abs(e.Change.Value-want) > 0.05:
				t.Errorf("%s %s instead of %s: %+v, want %.3f", k.Knob, e.Value, k.Chosen, e, want)
			}
		}
	}
	i := slices.IndexFunc(effects, func(k search.KnobEffect) bool { return k.Knob == search.KnobPrecision })
	if i < 0 || effects[i].Chosen != "int8" || math.Abs(effects[i].Size()-0.4) > 0.1 { // int8 takes 0.6 of the time
		t.Errorf("the effect of precision: %+v", effects)
	}
}

// One thread takes 3.6 ms for an inference even with int8, which is above the limit of 3 ms. Two
// take 2.1 ms.
func TestEffectsNameWhatMissesTheLimit(t *testing.T) {
	t.Parallel()
	m := exact(0.003)
	g, _ := m.run(t, 120)
	ranked := g.Ranked()
	if len(ranked) == 0 || !ranked[0].Point.Passes() {
		t.Fatal("nothing passes")
	}
	for _, k := range g.Effects(ranked[0].Candidate) {
		if k.Knob != search.KnobIntraOpThreads {
			continue
		}
		i := slices.IndexFunc(k.Others, func(e search.Effect) bool { return e.Value == "1" })
		if i < 0 || len(k.Others[i].Misses) != 1 || k.Others[i].Misses[0].Constraint.Metric != measure.LatencyP99 || k.Size() != 1 {
			t.Errorf("the effect of the threads is %+v, want that one misses the limit on p99", k)
		}
		return
	}
	t.Error("no effect of the threads is told")
}

func TestPredictTellsWhatIsKnown(t *testing.T) {
	t.Parallel()
	m := exact(10)
	m.tail = 0.3
	g, _ := m.run(t, 120)
	best := g.Ranked()[0]
	known, ok := g.Predict(best.Candidate, best.Load)
	if !ok || len(known.Service.Sizes) == 0 {
		t.Fatalf("of the best nothing is known: %+v", known)
	}
	x, _, p99 := m.truth(g, best.Candidate, best.Load)
	for _, v := range known.Values {
		switch {
		case v.Metric == measure.Throughput && (math.Abs(*v.Simulated/x-1) > 0.05 || v.Believed.Lo > x || x > v.Believed.Hi):
			t.Errorf("throughput is %.1f, simulated %.1f, believed %+v", x, *v.Simulated, *v.Believed)
		case v.Metric == measure.LatencyP99 && (math.Abs(*v.Simulated/p99-math.Exp(-0.3)) > 0.08 || v.Believed.Lo > p99 || p99 > v.Believed.Hi):
			t.Errorf("p99 is %.4f, simulated %.4f, believed %+v", p99, *v.Simulated, *v.Believed)
		case v.Metric == measure.LatencyAvg && (v.Simulated == nil || v.Believed != nil):
			t.Errorf("the mean latency, which the goal has not, is %+v", v)
		}
	}
	if len(known.Values) != 3 {
		t.Errorf("predicted are %+v", known.Values)
	}
	other := search.NewCandidate(search.Setting{Knob: search.KnobInstanceCount, Value: "7"})
	if _, ok := g.Predict(other, best.Load); ok {
		t.Error("something is known of a candidate that the space has not")
	}
}
