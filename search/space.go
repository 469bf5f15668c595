package search

import (
	"math"
	"slices"
	"time"

	"tuner/measure"
	"tuner/measure/arrivals"
)

// Space is the search space of a campaign: the knobs, the loads, and the rules that fold illegal or
// equivalent combinations.
type Space struct {
	Knobs []Knob
	Load  LoadAxis
	Facts Facts
	// Parts are the spaces of several models on one server (package joint), or of the stages of a pipeline. Knobs then has all their knobs,
	// and Facts the server's cores alone.
	Parts []Part
	// Server lists the knobs of the server of several models, the first of Knobs.
	Server []Knob
	// Joint makes the candidates of several models.
	Joint Joint
}

// LoadAxis is the range of loads in which the highest load within the constraints is sought for
// each configuration.
type LoadAxis struct {
	// levels are request rates (requests/s) or, with Mix, scales of the traffic; else concurrencies
	Rate      bool
	Levels    []float64 // ascending, at least one: the levels of the first sweep
	Any       bool      // any whole level between the first and the last may be tried too (the axis is a range)
	BatchSize int       // client batch, ≥ 1
	// Arrivals say when the requests of a rate are due.
	Arrivals arrivals.Pattern
	// Mix is the traffic of several models at scale 1. Levels are then scales.
	Mix measure.Mix
}

// Whole returns the length of a window at a level, in whole periods of the arrivals.
func (a LoadAxis) Whole(length time.Duration, level float64) time.Duration {
	if !a.Rate {
		return length
	}
	return a.Arrivals.Whole(length, level)
}

// Longest returns the largest Whole of all levels: the period of a trace depends on its rate.
func (a LoadAxis) Longest(length time.Duration) time.Duration {
	if !a.Rate {
		return length
	}
	return a.Whole(length, a.First())
}

// At returns the load at a level.
func (a LoadAxis) At(level float64) measure.Load {
	if !a.Mix.IsZero() {
		return measure.Load{Scale: level, Mix: a.Mix}
	}
	if a.Rate {
		return measure.Load{RequestRate: level, BatchSize: a.BatchSize}
	}
	return measure.Load{Concurrency: int(level), BatchSize: a.BatchSize}
}

// AtLeast returns the lowest level of the axis that is at least target, or the last one.
func (a LoadAxis) AtLeast(target float64) float64 {
	if a.Any {
		return min(max(math.Ceil(target), a.First()), a.Last())
	}
	for _, level := range a.Levels {
		if level >= target {
			return level
		}
	}
	return a.Last()
}

// AtMost returns the highest level of the axis that is at most target, or the first one.
func (a LoadAxis) AtMost(target float64) float64 {
	if a.Any {
		return max(min(math.Floor(target), a.Last()), a.First())
	}
	for _, level := range slices.Backward(a.Levels) {
		if level <= target {
			return level
		}
	}
	return a.First()
}

// First returns the lowest level.
func (a LoadAxis) First() float64 { return a.Levels[0] }

// Last returns the highest level.
func (a LoadAxis) Last() float64 { return a.Levels[len(a.Levels)-1] }

// Facts are the facts about model and machine that the folding rules need.
type Facts struct {
	Cores int // usable cores; 0 unknown
	// Nodes are the processors of each NUMA node that several models may divide; empty if they share all.
	Nodes []int `json:",omitempty"`
	// Batching: every input and output has a symbolic first dimension, and the default configuration batches. Of a
	// pipeline: its own configuration does
	Batching   bool
	TritonOnly bool // deploy_target triton: keep only knobs that a stock Triton honours
	// BaseMaxBatchSize and BaseInstances are the default configuration's, for candidates that do
	// not set those knobs. 0 stands for the values of Triton's auto-completion: 4 and 2.
	BaseMaxBatchSize int
	BaseInstances    int
	// GPUs is the number of GPUs that an instance group on GPUs uses. Each has the group's count of
	// instances. 0 means one.
	GPUs int `json:",omitempty"`
	// InstanceGroups is the number of instances for each value of the knob instance_group.
	InstanceGroups map[Value]int `json:",omitempty"`
	// Base holds the default configuration's knob values. Only knobs are listed for which a
	// candidate with that value equals the default.
	Base map[string]Value `json:",omitempty"`
	// Unavailable maps an execution provider to the reason why it creates no session here.
	Unavailable map[string]string
	// Assigned describes, for people, the model's nodes that each execution provider took.
	Assigned map[string]string `json:",omitempty"`
	// After names the stages of a pipeline whose answers this stage needs.
	After []string `json:",omitempty"`
	// IsForeign: another backend than ONNX Runtime's serves the model, so there is no session to tune.
	IsForeign bool `json:",omitempty"`
	// Runtimes lists the ONNX Runtime builds of the knob runtime, the default's first; empty for a
	// single one.
	Runtimes   []RuntimeFacts `json:",omitempty"`
	Precisions []string       // precisions with a model file
	// Mix lists the kinds of requests; empty if all have one shape.
	Mix []Kind `json:",omitempty"`
	// Padded has the kinds of the padded requests, by the values of the knob padding.
	Padded map[Value][]Kind `json:",omitempty"`
	// Rejected lists the variants that the accuracy check rejected. They are never measured.
	Rejected []Rejection `json:",omitempty"`
	// Trace is the trace of the arrivals, or a sample of it.
	Trace *arrivals.Trace `json:",omitempty"`
	// Parts are the facts of several models, by name. The others are then the machine's alone.
	Parts map[string]Facts `json:",omitempty"`
}

// base returns a knob's value in the default configuration; false if no value of the knob equals
// the default. The first build serves the default, whatever the configuration says.
func (f Facts) base(knob string) (Value, bool) {
	if knob == KnobRuntime && len(f.Runtimes) > 0 {
		return Value(f.Runtimes[0].Name), true
	}
	v, known := f.Base[knob]
	return v, known
}

// RuntimeFacts are the abilities of one of several ONNX Runtime builds for the model on this
// machine.
type RuntimeFacts struct {
	Name        string            // flavour@version, a value of the knob runtime
	Unavailable map[string]string `json:",omitempty"` // like Facts.Unavailable
	Assigned    map[string]string `json:",omitempty"` // like Facts.Assigned
}

// Rejection is a precision that may not serve on an execution provider. Its outputs differ too much
// from the original model's, or there is no such model.
type Rejection struct {
	Precision string
	Provider  string // "": all
	Runtime   string `json:",omitempty"` // the build if several are measured; "": all
	Reason    string
}

// Knee returns the concurrency at which a configuration saturates in a closed loop, in requests of
// the axis's client batch. Every instance then has a full batch at work and another one waiting: 2
// · max_batch_size · instances inferences in flight (Model Analyzer's formula).
//
// Of several models it is the scale 1, at which their traffic is the profile's. Of a pipeline it is the
// largest of its stages'.
func (s Space) Knee(c Candidate) float64 {
	switch {
	case s.IsPipeline():
		most := 0.0
		for _, p := range s.Parts {
			p.Space.Load.BatchSize = s.Load.BatchSize
			most = max(most, p.Space.Knee(c.Of(p.Model)))
		}
		return most
	case s.IsSeveral():
		return 1
	}
	return float64(2*s.MaxBatch(c)*s.Facts.Instances(c)) / float64(max(s.Load.BatchSize, 1))
}

// Fold is a reason why combinations were left out or merged into others.
type Fold struct {
	Reason string
	Count  int    // combinations folded for this reason
	Into   string // example: the key of the candidate into which they were merged; "" if they were left out
}

// Folds sums up folds by reason, in the order of their first appearance. The zero value is empty.
type Folds struct {
	list []Fold
	at   map[string]int // index in list, by reason
}

// Add counts combinations that are folded for a reason. into is Fold.Into for its first appearance.
func (f *Folds) Add(reason, into string, count int) {
	i, ok := f.at[reason]
	if !ok {
		if f.at == nil {
			f.at = map[string]int{}
		}
		i = len(f.list)
		f.at[reason] = i
		f.list = append(f.list, Fold{Reason: reason, Into: into})
	}
	f.list[i].Count += count
}

// List returns the folds.
func (f *Folds) List() []Fold { return f.list }
