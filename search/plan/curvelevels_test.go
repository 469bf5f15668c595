package plan

import (
	"slices"
	"testing"

	"tuner/measure"
	"tuner/search"
)

// The curves of several models have scales that differ by 4 % at least, from the lowest of the axis to nearly its
// highest. Other axes are shown whole.
func TestCurvesHaveDistantScales(t *testing.T) {
	t.Parallel()
	mix, err := measure.NewMix(measure.Part{Model: "a", RequestRate: 1, BatchSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []float64{1.001, 1.011, 1.04, 1.3} {
		axis := search.LoadAxis{Rate: true}
		for level := 0.25; level <= 8; level *= step {
			axis.Levels = append(axis.Levels, level)
		}
		p := &Plan{settings: search.Settings{Space: search.Space{Load: axis}}, tuning: DefaultTuning()}
		if !slices.Equal(p.curveLevels(), axis.Levels) {
			t.Errorf("steps of %v: a curve of one model has %d of %d levels", step, len(p.curveLevels()), len(axis.Levels))
		}
		p.settings.Space.Load.Mix = mix
		list, least := p.curveLevels(), p.tuning.LoadCurveStep()
		for i := 1; i < len(list); i++ {
			if ratio := list[i] / list[i-1]; ratio < least || ratio > least*step*(1+1e-9) {
				t.Errorf("steps of %v: neighbours on a curve differ by the factor %v", step, ratio)
			}
		}
		if list[0] != axis.First() || list[len(list)-1] < axis.Last()/(least*step) {
			t.Errorf("steps of %v: the curve goes from %v to %v", step, list[0], list[len(list)-1])
		}
	}
}
