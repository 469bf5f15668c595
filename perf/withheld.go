package perf

import (
	"math"

	"tuner/measure"
	"tuner/measure/stats"
)

// evened removes the effect of withheld CPU time from a figure of a level's windows, relative to
// its mean: a control variate. It learns the slope from these windows, which are all of one
// configuration at one load. usual is the expected slope. If a figure is not positive, or nothing
// was withheld, the figures stay as they are.
func evened(windows []measure.Window, figures []float64, usual float64) []float64 {
	var groups []int
	var withheld, logs []float64
	for i, w := range windows {
		if figures[i] <= 0 {
			return figures
		}
		groups, withheld, logs = append(groups, 0), append(withheld, w.Withheld(0)), append(logs, math.Log(figures[i]))
	}
	v := stats.LearnVariate(groups, withheld, logs, usual, 0)
	list := make([]float64, len(figures))
	for i, x := range figures {
		list[i] = x * math.Exp(-v.Part(withheld[i]))
	}
	return list
}

// disturbance says how much others took from a level's windows and what it means for them. "" if
// that is negligible.
func (s Settings) disturbance(m measure.Measurement) string {
	meaning := "figures are as measured"
	if s.RequestCount == 0 && s.Stop.Rule == RuleStability {
		meaning = "windows are compared as if it had been the average, and figures are as measured"
	}
	return measure.OthersIn(m.Windows, 0).Sentence(meaning)
}
