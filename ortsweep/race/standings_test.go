package race

import (
	"math"
	"testing"

	"tuner/search"
)

// Figures of finalists are consistent with their gains, even if one window of the default is an
// outlier. So the table has one order.
func TestFiguresAreInLineWithGains(t *testing.T) {
	t.Parallel()
	for _, rounds := range []int{3, 4, 5, 12} {
		a := search.NewCandidate(search.Setting{Knob: "session.a", Value: "1"})
		b := search.NewCandidate(search.Setting{Knob: "session.b", Value: "1"})
		finals := newHeat(PhaseFinal, []search.Candidate{a, b})
		for round := range rounds {
			for i, seconds := range []float64{4, 4.2, 3.9} {
				seconds *= 1 + 0.01*float64((round+i)%3)
				if i == 0 && round == 1 {
					seconds *= 3
				}
				finals.entrants[i].tell(Outcome{Value: seconds}, false)
			}
			finals.round++
		}
		r := &Race{heats: []*heat{finals}, why: "over"}
		result := r.Result()
		var base Standing
		for _, s := range result.Standings {
			if s.Candidate.IsDefault() {
				base = s
			}
		}
		for _, s := range result.Standings {
			if want := base.Value.Value / s.Value.Value; !s.Final || math.Abs(s.Gain.Value-want) > 1e-9 {
				t.Errorf("%d rounds: the gain of %s is %g, its figure says %g", rounds, s.Candidate, s.Gain.Value, want)
			}
			if s.Value.Lo > s.Value.Value || s.Value.Hi < s.Value.Value {
				t.Errorf("%d rounds: the figure of %s is %+v", rounds, s.Candidate, s.Value)
			}
		}
	}
}
