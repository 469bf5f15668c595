package analyze

import (
	"math"

	"tuner/measure"
	"tuner/search"
)

// Chance is a constraint at a point, and the probability that it holds there.
type Chance struct {
	Constraint  search.Constraint
	Probability float64 // 0..1
}

// Probability is that of all constraints to hold at once, 0..1, their errors taken as independent: where they are not, as of two percentiles of the
// same requests, it is understated.
func (s Sample) Probability() float64 {
	p := 1.0
	for _, c := range s.Chances {
		p *= c.Probability
	}
	return p
}

// chances are the goal's constraints in their order. What is not known does not hold.
func chances(values map[measure.Metric]measure.Estimate, goal search.Goal) []Chance {
	var list []Chance
	for _, c := range goal.Constraints {
		p := 0.0
		if e, known := values[c.Metric]; known {
			p = probability(c, e)
		}
		list = append(list, Chance{c, p})
	}
	return list
}

func probability(c search.Constraint, e measure.Estimate) float64 {
	p := 1.0
	if c.Max != nil {
		p = below(e, *c.Max)
	}
	if c.Min != nil {
		p -= below(e, *c.Min)
	}
	return max(0, p)
}

// quantile975 is that of the standard normal distribution: an interval of 95 % reaches so many standard deviations to each side.
const quantile975 = 1.959964

// below is the probability that a metric's true value is at most a limit. Its logarithm is taken as normal around the estimate's, with half of
// the interval on the side of the limit, since intervals of percentiles are longer above than below. Without an interval the
// value itself decides.
func below(e measure.Estimate, limit float64) float64 {
	distance, half := math.Log(limit/e.Value), math.Log(e.Hi/e.Value)
	if limit < e.Value {
		half = math.Log(e.Value / e.Lo) // without end where the interval reaches down to nothing
	}
	switch {
	case e.Value <= 0 || !(half > 0):
		if e.Value <= limit {
			return 1
		}
		return 0
	case math.IsInf(half, 0):
		return 0.5
	}
	return math.Erfc(-distance/half*quantile975/math.Sqrt2) / 2
}
