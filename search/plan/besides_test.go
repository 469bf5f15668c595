package plan

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tuner/measure"
	"tuner/search"
)

// Of several models, the finals consider all scales near an answer's: both neighbours, as far as there are any, and
// whatever is within a tenth. All that they consider are levels of the axis.
func TestNeighbouringScalesAreConsidered(t *testing.T) {
	t.Parallel()
	mix, err := measure.NewMix(measure.Part{Model: "a", RequestRate: 1, BatchSize: 1}, measure.Part{Model: "b", RequestRate: 2, BatchSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		axis := search.LoadAxis{Rate: true, Mix: mix}
		step := math.Exp2(1 / float64(1+r.IntN(64)))
		for level := 0.25; level <= 8; level *= step {
			axis.Levels = append(axis.Levels, level)
		}
		p := &Plan{settings: search.Settings{Space: search.Space{Load: axis}}, tuning: DefaultTuning()}
		at := r.IntN(len(axis.Levels))
		got := p.besides(axis.Levels[at])
		for k, level := range axis.Levels {
			isNear := level > axis.Levels[at]/1.1 && level < axis.Levels[at]*1.1 || k == at-1 || k == at+1
			if isNear && k != at && !slices.Contains(got, level) {
				t.Errorf("seed %d: beside level %d of %d, level %d is not considered", seed, at, len(axis.Levels), k)
			}
		}
		for _, level := range got {
			if !slices.Contains(axis.Levels, level) {
				t.Errorf("seed %d: %v is no level", seed, level)
			}
		}
	}
}
