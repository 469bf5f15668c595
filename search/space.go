package search

import (
	"math"
	"slices"

	"tuner/measure"
)

// Space is what a campaign searches: the knobs, the loads, and the rules that fold illegal or equivalent combinations.
type Space struct {
	Knobs []Knob
	Load  LoadAxis
	Facts Facts
}

// LoadAxis is the range of loads in which each configuration's highest load within the constraints is sought.
type LoadAxis struct {
	Rate      bool      // levels are request rates (requests/s), else concurrencies
	Levels    []float64 // ascending, at least one: the levels of the first sweep
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

// AtLeast returns the lowest level of the axis that is not below target, or the last one.
func (a LoadAxis) AtLeast(target float64) float64 {
	if a.Any {
		return min(max(math.Ceil(target), a.first()), a.last())
	}
	for _, level := range a.Levels {
		if level >= target {
			return level
		}
	}
	return a.last()
}

// AtMost returns the highest level of the axis that is not above target, or the first one.
func (a LoadAxis) AtMost(target float64) float64 {
	if a.Any {
		return max(min(math.Floor(target), a.last()), a.first())
	}
	for _, level := range slices.Backward(a.Levels) {
		if level <= target {
			return level
		}
	}
	return a.first()
}

func (a LoadAxis) first() float64 { return a.Levels[0] }

func (a LoadAxis) last() float64 { return a.Levels[len(a.Levels)-1] }

// Facts is what the folding rules need to know about model and machine.
type Facts struct {
	Cores      int  // usable cores; 0 unknown
	Batching   bool // every input and output has a symbolic first dimension, and the default configuration batches
	TritonOnly bool // deploy_target triton: keep only what a stock Triton honours
	// BaseMaxBatchSize and BaseInstances are the default configuration's, for candidates that leave those knobs alone;
	// 0 is what Triton's auto-completion makes: 4 and 2.
	BaseMaxBatchSize int
	BaseInstances    int
	// GPUs is how many GPUs an instance group on GPUs is on, each with as many instances as the group counts; 0 is one.
	GPUs int `json:",omitempty"`
	// InstanceGroups is the number of instances of each value of the knob instance_group.
	InstanceGroups map[Value]int `json:",omitempty"`
	// Base is the values of knobs that the default configuration has, as far as a candidate that sets them is the same.
	Base map[string]Value `json:",omitempty"`
	// Unavailable maps an execution provider to the reason why it creates no session here.
	Unavailable map[string]string
	// Assigned says which of the model's nodes an execution provider took, for people.
	Assigned map[string]string `json:",omitempty"`
	// Runtimes lists the ONNX Runtime builds of the knob runtime, the default's first; empty for a single one.
	Runtimes   []RuntimeFacts `json:",omitempty"`
	Precisions []string       // precisions with a model file
	// Rejected lists what the accuracy check has thrown out: it is never measured.
	Rejected []Rejection `json:",omitempty"`
}

// base returns a knob's value in the default configuration, and false where no value of the knob is the same as the default. The
// build that serves the default is the first one, whatever the configuration says.
func (f Facts) base(knob string) (Value, bool) {
	if knob == KnobRuntime && len(f.Runtimes) > 0 {
		return Value(f.Runtimes[0].Name), true
	}
	v, known := f.Base[knob]
	return v, known
}

// RuntimeFacts is what one of several ONNX Runtime builds can do with the model on this machine.
type RuntimeFacts struct {
	Name        string            // flavour@version, a value of the knob runtime
	Unavailable map[string]string `json:",omitempty"` // as Facts.Unavailable
	Assigned    map[string]string `json:",omitempty"` // as Facts.Assigned
}

// Rejection is a precision that may not serve on an execution provider, because its outputs differ too much from the original
// model's, or because there is no such model.
type Rejection struct {
	Precision string
	Provider  string // "" on every one
	Runtime   string `json:",omitempty"` // of several builds that are measured, the one; "" in every one
	Reason    string
}

// Knee is the concurrency at which a configuration saturates in a closed loop: every instance has a full batch at work and
// another one waiting, 2 · max_batch_size · instances inferences in flight (Model Analyzer's formula), in requests of the
// axis's client batch.
func (s Space) Knee(c Candidate) float64 {
	return float64(2*s.MaxBatch(c)*s.Facts.Instances(c)) / float64(max(s.Load.BatchSize, 1))
}

// Fold says why combinations were left out or merged into others.
type Fold struct {
	Reason string
	Count  int    // combinations folded for this reason
	Into   string // example: the key of a candidate that stands for them; "" when they were left out
}
