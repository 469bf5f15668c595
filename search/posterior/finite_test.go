package posterior

import (
	"math"
	"testing"

	"tuner/measure"
	"tuner/search"
)

// odd predicts 100/s for all configurations but the default, and no number for that.
type odd float64

func (x odd) Log(c search.Candidate, _ measure.Load, _ measure.Metric) (float64, bool) {
	if c.IsDefault() {
		return float64(x), true
	}
	return math.Log(100), true
}

// A prediction that is no number is none. Trials of its cell count like those of a cell without one.
func TestPredictionThatIsNoNumber(t *testing.T) {
	t.Parallel()
	other := search.Candidate{}.With(search.KnobInstanceCount, search.IntValue(2))
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}}
	events := []search.Event{trialAt(search.Candidate{}, 1, 1), trialAt(search.Candidate{}, 1, 1), trialAt(other, 1, 1), trialAt(other, 1, 1)}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		p := New(Options{Goal: goal, Prior: odd(x)}, events)
		for _, c := range []search.Candidate{{}, other} {
			cell := Cell{Candidate: c, Load: events[0].Trial.Load}
			n, ok := p.At(cell, measure.Throughput)
			if !ok {
				t.Fatalf("with a prediction of %v the throughput is unknown", x)
			}
			near(t, "throughput", math.Exp(n.Mean), 100, 5)
			if p.IsPredicted(cell, measure.Throughput) == c.IsDefault() {
				t.Errorf("with a prediction of %v, %s is predicted: %t", x, c, c.IsDefault())
			}
		}
	}
}

// Learning ends whatever the figures are.
func TestLearningEnds(t *testing.T) {
	t.Parallel()
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		list := []observation{{site: spot("a"), at: 1, log: 1}, {site: spot("a"), at: 2, log: x}, {site: spot("b"), at: 3, log: 2}}
		if p := learn(measure.Throughput, list, nil, false); len(p.parts) > 0 {
			t.Errorf("with a figure of %v, scales are likely: %+v", x, p.parts)
		}
	}
}
