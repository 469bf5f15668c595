package search

import (
	"math"

	"tuner/measure"
)

// KnobEffect describes the importance of a knob. For each other value it compares the best
// configuration with that value to the best one with the chosen value. All other knobs and the load
// are free (a partial optimum).
type KnobEffect struct {
	Knob   string
	Chosen Value    // the winner's
	Others []Effect // in the order of the space's values
}

// Effect compares the best configuration with another value of a knob to the best with the chosen
// value.
type Effect struct {
	Value Value
	Basis Basis
	// Change of the objective, relative: −0.12 is 12 % worse. Zero if Basis is unknown, or if
	// constraints are missed.
	Change measure.Estimate
	Misses []Miss // constraints that even the nearest configuration with the value misses; empty if it satisfies them
}

// Basis is the source of an effect.
type Basis string

// The bases of effects.
const (
	BasisMeasured  Basis = "measured"  // both sides were measured
	BasisPredicted Basis = "predicted" // at least one side is a prediction of the search without a window
	BasisBound     Basis = "bound"     // engine processes with the value were not started: Change is an upper bound
	BasisUnknown   Basis = "unknown"   // no configuration with the value has figures, or the space excludes it
)

// Size returns the largest change of the objective by a knob, as a share: 1 if a value misses the
// constraints, 0 if nothing is known.
func (k KnobEffect) Size() float64 {
	size := 0.0
	for _, e := range k.Others {
		if len(e.Misses) > 0 {
			return 1
		}
		size = max(size, math.Abs(e.Change.Value))
	}
	return size
}

// Value returns a knob's value in a candidate of the space: its own, or else the default
// configuration's; "" if that is unknown.
func (s Space) Value(c Candidate, knob string) Value {
	if v, ok := c.Get(knob); ok {
		return v
	}
	v, _ := s.base(knob)
	return v
}
