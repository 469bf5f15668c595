package plan

import (
	"math"
	"testing"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// prophet is an explorer of which only the rivals are asked.
type prophet struct {
	Explorer
	list []verdict.Rival
}

func (prophet) Log(search.Candidate, measure.Load, measure.Metric) (float64, bool) { return 0, false }

func (x prophet) Rivals() ([]verdict.Rival, bool) { return x.list, false }

// Rivals are in order of their expected objective, whatever the weights: a rival that is 30 % better and keeps the
// limits with a probability of 0.2 has 0.26, and one that is as good as now and keeps them with 0.9 has 0.9.
func TestWeightsDoNotOrderRivals(t *testing.T) {
	t.Parallel()
	better := verdict.Rival{Candidate: search.NewCandidate(search.Setting{Knob: search.KnobInstanceCount, Value: "2"}), Holds: 0.2}
	surer := verdict.Rival{Candidate: search.NewCandidate(search.Setting{Knob: search.KnobInstanceCount, Value: "3"}), Holds: 0.9}
	for _, weight := range []float64{0.1, 1, 10} {
		terms := []search.Term{{Metric: measure.Throughput, Weight: 0.9 * weight}, {Metric: measure.Memory, Weight: 0.1 * weight}}
		better.Score = posterior.Normal{Mean: weight * math.Log(1.3)}
		p := &Plan{settings: search.Settings{Goal: search.Goal{Objective: search.Objective{Terms: terms}}}, inner: prophet{list: []verdict.Rival{better, surer}}}
		if got := p.predicted(1); got[0].Holds != surer.Holds {
			t.Errorf("weights that sum to %v: %v is first", weight, got[0].Candidate)
		}
	}
}
