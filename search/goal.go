package search

import "tuner/measure"

// Goal is what makes a measurement good: an objective to improve, within constraints.
type Goal struct {
	Objective   Objective
	Constraints []Constraint
}

// Objective is a weighted sum of metrics on log scale: score = Σ weight · ±ln(value), + where higher is better. A single
// metric has weight 1. On log scale a factor counts the same wherever it starts, which makes the ranking transitive.
type Objective struct {
	Terms []Term // at least one; weights > 0
}

// Term is one metric of an objective.
type Term struct {
	Metric measure.Metric `json:"metric"`
	Weight float64        `json:"weight"`
}

// Constraint bounds a metric, in the metric's base unit. Nil bounds do not bound; at least one is set.
type Constraint struct {
	Metric measure.Metric `json:"metric"`
	Min    *float64       `json:"min,omitempty"`
	Max    *float64       `json:"max,omitempty"`
}

// Violation is the relative amount by which value misses the constraint: 0 when it satisfies it, 0.25 when a maximum is
// exceeded by a quarter.
func (c Constraint) Violation(value float64) float64 {
	switch {
	case c.Max != nil && value > *c.Max:
		return value/(*c.Max) - 1
	case c.Min != nil && value < *c.Min:
		return 1 - value/(*c.Min)
	}
	return 0
}
