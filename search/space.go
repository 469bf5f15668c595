package search

import "tuner/measure"

// Space is what a campaign searches: the knobs, the loads, and the rules that fold illegal or equivalent combinations.
type Space struct {
	Knobs []Knob
	Load  LoadAxis
	Facts Facts
}

// LoadAxis is the range of loads in which each configuration's highest load within the constraints is sought.
type LoadAxis struct {
	Rate      bool      // levels are request rates (requests/s), else concurrencies
	Levels    []float64 // ascending: the levels of the first sweep
	Any       bool      // any whole level between the first and the last may be tried too (the axis was given as a range)
	BatchSize int       // client batch, ≥ 1
}

// At returns the load at a level.
func (a LoadAxis) At(level float64) measure.Load {
	if a.Rate {
		return measure.Load{RequestRate: level, BatchSize: a.BatchSize}
	}
	return measure.Load{Concurrency: int(level), BatchSize: a.BatchSize}
}

// Facts is what the folding rules need to know about model and machine.
type Facts struct {
	Cores      int  // usable cores
	Batching   bool // every input and output has a symbolic first dimension
	TritonOnly bool // deploy_target triton: keep only what a stock Triton honours
	// Unavailable maps an execution provider to the reason why it creates no session here.
	Unavailable map[string]string
	// Runtimes lists the execution providers of each installed runtime, by the runtime knob's value.
	Precisions []string // precisions with a model file
}

// Fold says why combinations were left out or merged into others.
type Fold struct {
	Reason string
	Count  int    // combinations folded for this reason
	Into   string // example: the key of a candidate that stands for them; "" when they were left out
}
