package decide

import (
	"slices"

	"tuner/measure/stats"
)

// Value is what a pair says of a criterion.
type Value struct {
	// Logs are natural logarithms of how many times worse the candidate is than what it is compared with, one or more: of each
	// window beside the other side's, or a single one where only all windows together tell it.
	Logs []float64
	// Withheld is how much more CPU time others withheld from the candidate than from the baseline meanwhile, on log scale
	// (measure.Withheld); of a criterion without a baseline that was measured, from the candidate. As many as Logs, or none
	// where it is unknown.
	Withheld []float64
}

// settled are the pairs' values, freed of what others withheld.
type settled struct {
	values []float64 // by pair
	doubt  float64   // variance that this adds to their mean
	slope  float64   // of the values over what was withheld; 0 where nothing was taken out
}

// settle joins each pair to one value. The
// slope is learned from windows of the same pair, and where a pair has a single value from all pairs: so it is always learned
// from values of the same two configurations. Where nothing was withheld, the values are Middle of the logs.
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

// variate learns what the withheld time does. Pairs are compared as if nothing more had been withheld from one side than from
// the other; the candidate alone as if the mean of all its windows had been.
func (c Criterion) variate(pairs []Value) stats.Variate {
	if c.Slope == 0 {
		return stats.Variate{}
	}
	var groups []int
	var x, y []float64
	for i, p := range pairs {
		if len(p.Logs) == 1 {
			i = 0 // all pairs together
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
