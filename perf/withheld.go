package perf

import (
	"math"

	"tuner/measure"
	"tuner/measure/stats"
)

// evened takes what others withheld out of a figure of a level's windows, moved to the mean of it: a control variate. The
// slope is learned from these windows, which are all of one configuration at one load; usual is what is expected of it.
// Figures that are not positive, and all of them where nothing was withheld, stay as they are.
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

// disturbance says what others took of a level's windows, and what that means for them; "" where that is next to nothing.
func (s Settings) disturbance(m measure.Measurement) string {
	meaning := "figures are as measured"
	if s.RequestCount == 0 && s.Stop.Rule == RuleStability {
		meaning = "windows are compared as if it had been the average, and figures are as measured"
	}
	return measure.OthersIn(m.Windows, 0).Sentence(meaning)
}
