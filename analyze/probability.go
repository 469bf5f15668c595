package analyze

import (
	"tuner/search"
	"tuner/search/verdict"
)

// Chance is a constraint at a point, with the probability that it holds there.
type Chance struct {
	Constraint  search.Constraint
	Probability float64 // 0..1
	// IsUnknown means that too few requests were measured for the percentile, and no other estimate
	// exists.
	IsUnknown bool
}

// Satisfies reports whether the figures satisfy each constraint, and are likely to satisfy all at once.
func (s Sample) Satisfies() bool { return len(s.Misses) == 0 && s.Probability() >= verdict.Likely }

// Probability returns the probability that all constraints hold at once, 0..1. It assumes
// independent errors. For correlated errors, such as two percentiles of the same requests, it is
// too low. It is 0 if the objective is not known.
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
