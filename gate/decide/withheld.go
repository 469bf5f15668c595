package decide

import (
	"slices"

	"tuner/measure/stats"
)

// Value is a pair's value for a criterion.
type Value struct {
	// Logs are natural logarithms of the factor by which the candidate is worse than its reference,
	// one or more. There is one for each pair of windows, or a single one if the metric needs all
	// windows together.
	Logs []float64
	// Withheld is the CPU time that others withheld from the candidate, minus that withheld from
	// the baseline, on log scale (measure.Withheld). Without a measured baseline it is the
	// candidate's alone. It has as many values as Logs, or none if it is unknown.
	Withheld []float64
}

// settled has the pairs' values after the correction for withheld time.
type settled struct {
	values []float64 // one per pair
	doubt  float64   // variance that the correction adds to their mean
	slope  float64   // slope of the values over the withheld time; 0 without a correction
}

// settle reduces each pair to one value. It learns the slope from windows of the same pair. If a
// pair has a single value, it learns from all pairs. So the slope always comes from values of the
// same two configurations. If nothing was withheld, each value is the Middle of the pair's
// logarithms.
func (c Criterion) settle(pairs []Value) settled {
	v, excess, s := c.variate(pairs), 0.0, settled{}
	for _, p := range pairs {
		logs := slices.Clone(p.Logs)
		for i := range min(len(logs), len(p.Withheld)) {
			if p.Withheld[i] != 0 {
				s.slope = v.Slope
			}
			logs[i] -= v.Part(p.Withheld[i])
			excess += (p.Withheld[i] - v.Mean) / float64(len(logs)*len(pairs))
		}
		s.values = append(s.values, Middle(logs))
	}
	s.doubt = v.Variance * excess * excess
	return s
}

// variate learns the effect of withheld time. It corrects pairs to an equal withheld time on both
// sides. Without a baseline it corrects to the mean over all of the candidate's windows.
func (c Criterion) variate(pairs []Value) stats.Variate {
	if c.Slope == 0 {
		return stats.Variate{}
	}
	var groups []int
	var x, y []float64
	for i, p := range pairs {
		if len(p.Logs) == 1 {
			i = 0 // one group with all pairs
		}
		for k := range min(len(p.Logs), len(p.Withheld)) {
			groups, x, y = append(groups, i), append(x, p.Withheld[k]), append(y, p.Logs[k])
		}
	}
	v := stats.LearnVariate(groups, x, y, c.Slope, 0)
	if c.IsAlone {
		return v
	}
	return v.At(0)
}
