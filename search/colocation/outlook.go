package colocation

import (
	"math"
	"slices"
)

// Unmeasured lists the cells that may be measured next and never were. The caller must not change them.
func (x *Search) Unmeasured() []Cell {
	return slices.DeleteFunc(slices.Clone(x.promising), func(c Cell) bool { return x.trials[c.key()] > 0 })
}

// Scale returns the largest scale that all models keep in a cell with a probability; 0 if none is.
func (x *Search) Scale(c Cell, probability float64) float64 { return math.Exp(x.scale(c, probability)) }

// Holds returns the probability that all models keep their limits in a cell at a scale.
func (x *Search) Holds(c Cell, scale float64) float64 { return x.outlook(c).holds(math.Log(scale)) }

// Margin returns how far a model's latencies are beyond its limits in a cell at a scale, as the service
// times predict it without any trial: the largest ln(latency/limit).
func (x *Search) Margin(c Cell, model int, scale float64) float64 {
	return x.margins(c)[x.position(model)].of(math.Log(scale))
}
