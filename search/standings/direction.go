package standings

import "tuner/search"

// Direction is the direction of the loads that can cure what a load misses.
type Direction int

// The directions.
const (
	Here   Direction = iota // nothing is missed
	Lower                   // a metric exceeds its maximum, and metrics except search.FallsWithLoad rise with the load
	Higher                  // a metric is below its minimum
	Never                   // no load is known to help
)

// DirectionOf returns the direction of the loads that can satisfy the missed constraints.
func DirectionOf(misses []search.Miss) Direction {
	result := Here
	for _, m := range misses {
		wanted, tooMuch := Higher, m.Constraint.Max != nil && m.Value > *m.Constraint.Max
		if tooMuch != search.FallsWithLoad(m.Constraint.Metric) {
			wanted = Lower
		}
		if m.Missing || search.IsMemory(m.Constraint.Metric) || (result != Here && result != wanted) {
			return Never
		}
		result = wanted
	}
	return result
}

// Direction returns the direction of the loads that can satisfy the constraints that the point
// misses. No load helps a point without a score.
func (p Point) Direction() Direction {
	if !p.Scored {
		return Never
	}
	return DirectionOf(p.Misses)
}
