package explorer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tuner/search"
	"tuner/search/standings"
)

// The leader is first measured at the highest level that it surely keeps. Later trials are at most one level above
// that, and at most at the level that is nearest to its most likely scale. So a trial decides on the next answer, on
// axes of any steps.
func TestTheLeaderIsMeasuredWhereTheAnswerMayRise(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var axis search.LoadAxis
		step := math.Exp2(1 / float64(1+r.IntN(64)))
		for level := 0.25; level <= 8; level *= step {
			axis.Levels = append(axis.Levels, level)
		}
		sure := math.Exp2(-3 + 7*r.Float64())
		likely := sure * math.Exp(0.3*r.Float64())
		highest := axis.AtMost(sure)
		if got := leading(axis, sure, likely, nil); got != highest {
			t.Errorf("seed %d: the first trial is at %v, want %v", seed, got, highest)
		}
		level := leading(axis, sure, likely, []standings.Point{{Level: axis.First()}, {Level: highest}})
		at, from := slices.Index(axis.Levels, level), slices.Index(axis.Levels, highest)
		if at < from || at > from+1 || level > nearest(axis, max(likely, axis.First())) && level > highest {
			t.Errorf("seed %d: a later trial is at %v, after %v, with a likely scale of %v", seed, level, highest, likely)
		}
	}
}
