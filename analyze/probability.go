package analyze

import "tuner/search"

// Chance is a constraint at a point, and the probability that it holds there.
type Chance struct {
	Constraint  search.Constraint
	Probability float64 // 0..1
	// IsUnknown says that too few requests were measured for the percentile, and nothing else tells it.
	IsUnknown bool
}

// Probability is that of all constraints to hold at once, 0..1, their errors taken as independent: where
// they are not, as of two percentiles of the same requests, it is understated. It is 0 where the objective is not known.
func (s Sample) Probability() float64 {
	if len(s.Chances) == 0 && len(s.Misses) > 0 {
		return 0
	}
	p := 1.0
	for _, c := range s.Chances {
		p *= c.Probability
	}
	return p
}
