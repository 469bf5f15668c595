package search

import (
	"math"

	"tuner/measure"
)

// KnobEffect says how much a knob matters: how good the best is with each of its other values, all other knobs and the load free,
// beside the best with the chosen value (a partial optimum).
type KnobEffect struct {
	Knob   string
	Chosen Value    // the winner's
	Others []Effect // in the order of the space's values
}

// Effect is what the best with another value of a knob is beside the best with the chosen one.
type Effect struct {
	Value Value
	Basis Basis
	// Change of the objective, relative: −0.12 is 12 % worse. Zero where Basis is unknown, and where constraints are missed.
	Change measure.Estimate
	Misses []Miss // constraints that even the nearest with the value misses; empty where it satisfies them
}

// Basis is what an effect rests on.
type Basis string

// The bases of effects.
const (
	BasisMeasured  Basis = "measured"  // both sides were
	BasisPredicted Basis = "predicted" // at least one side is what the search believes without a window of it
	BasisBound     Basis = "bound"     // engine processes with the value were not started: Change is the most that it may be
	BasisUnknown   Basis = "unknown"   // nothing with the value has figures, or it is left out of the space
)

// Size is by how much a knob can change the objective, as a share: 1 where a value misses the constraints, 0 where nothing is known.
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

// Value is what a knob is in a candidate of the space: its own value, or else the default configuration's; "" where that is unknown.
func (s Space) Value(c Candidate, knob string) Value {
	if v, ok := c.Get(knob); ok {
		return v
	}
	v, _ := s.Facts.base(knob)
	return v
}
