package plan

import (
	"math"
	"testing"

	"tuner/search"
)

// Before any trial, a configuration at one load is expected to take one trial. Of eight levels one in two takes
// three more, by which halving finds the best.
func TestGuessedTrials(t *testing.T) {
	t.Parallel()
	for levels, want := range map[int]float64{1: 1, 2: 1.5, 8: 2.5} {
		if got := guessedTrials(search.LoadAxis{Levels: make([]float64, levels)}); math.Abs(got-want) > 1e-12 {
			t.Errorf("%d levels take %v trials, want %v", levels, got, want)
		}
	}
}
