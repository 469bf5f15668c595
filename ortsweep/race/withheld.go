package race

import (
	"math"

	"tuner/measure/stats"
)

// correct corrects all figures for the CPU time that others withheld from their windows. It is a
// control variate on the logarithm. Its slope is learned from windows of the same candidate in the
// same heat. Figures are corrected to the race's mean of the withheld time. If nothing was
// withheld, figures do not change.
func (r *Race) correct() {
	type group struct {
		heat int
		key  string
	}
	var groups []group
	var withheld, logs []float64
	disturbed := false
	for i, h := range r.heats {
		for _, e := range h.entrants {
			for k, x := range e.withheld {
				groups = append(groups, group{i, e.candidate.Key()})
				withheld, logs = append(withheld, x), append(logs, math.Log(score(e.measured[k], r.settings.HigherBetter)))
				disturbed = disturbed || x != 0
			}
		}
	}
	if !disturbed {
		return
	}
	const lost = -1 // all withheld time is lost
	r.withheld = stats.LearnVariate(groups, withheld, logs, lost, 0)
	for _, h := range r.heats {
		for _, e := range h.entrants {
			e.correct(r.withheld, r.settings.HigherBetter)
		}
	}
}

// correct sets an entrant's figures to their expected values if others took their average share.
func (e *entrant) correct(v stats.Variate, higherBetter bool) {
	e.variate = v
	for k, x := range e.withheld {
		factor := math.Exp(-v.Part(x))
		e.scores[k] = score(e.measured[k], higherBetter) * factor
		e.values[k] = e.measured[k] * factor
		if !higherBetter {
			e.values[k] = e.measured[k] / factor
		}
	}
}

// score returns a figure with "larger is better": a latency's reciprocal.
func score(value float64, higherBetter bool) float64 {
	if higherBetter {
		return value
	}
	return 1 / value
}

// doubt returns the variance that the correction adds to the logarithm of two entrants' ratio, in
// the rounds that both took part in.
func (e *entrant) doubt(other *entrant) float64 {
	n := min(len(e.withheld), len(other.withheld))
	excess := 0.0
	for k := range n {
		excess += (e.withheld[k] - other.withheld[k]) / float64(n)
	}
	return e.variate.Variance * excess * excess
}

// ownDoubt returns the variance that the correction adds to the logarithm of an entrant's level.
func (e *entrant) ownDoubt() float64 {
	mean := 0.0
	for _, x := range e.withheld {
		mean += x / float64(len(e.withheld))
	}
	if len(e.withheld) == 0 {
		return 0
	}
	return e.variate.Doubt(mean)
}

// first returns the first n values, or all if there are fewer.
func first(values []float64, n int) []float64 { return values[:min(n, len(values))] }
