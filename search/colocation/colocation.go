// Package colocation searches the configurations of several models on one server, and the division of
// its cores among them, for the largest scale: every model carries that multiple of its load within its
// limits.
//
// It knows each model's service curves, measured alone. From them it predicts how far each model's
// latencies are beyond the limits at any load: on divided cores from the model's own queue, on shared
// ones from all queues together. Trials of all models together correct that. Each model has one
// correction for each cell, its slowdown in company. What a slowdown of one cell tells about others
// depends on what they have in common.
//
//	service curves ─▶ margins      latencies over limits, by load   ─┐
//	trials         ─▶ residuals    slowdowns in company             ─┴▶ beliefs about cells
//	                  packing      the best divisions by what is believed, and cells around them
//	                  Search       the trial of the leader or a challenger with the most gain per second
//
// Like every strategy, the search has no clock: the next trial is a function of the settings and the
// outcomes. The reasons are in docs/design/search.md.
package colocation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"tuner/internal/words"
	"tuner/measure"
	"tuner/search/queuesim"
)

// Model is one of the models, with all its configurations.
type Model struct {
	Name    string
	Load    measure.Load // at scale 1; the zero load takes no part
	Limits  []Limit      // at least one for a model with a load
	Options []Option
}

// Limit bounds a latency.
type Limit struct {
	Metric  measure.Metric // a percentile of the latency, or its mean
	Seconds float64
}

// Option is a configuration of one model.
type Option struct {
	Name string
	Pool string // key of its engine process
	// Knobs are the positions of its values, of each knob. Options that differ in one knob are neighbours.
	Knobs   []int
	Batcher queuesim.Batcher
	// Curve has the times of its batches while no other model computes. Its Threads are the cores that
	// each instance asks for. An option needs as many cores of its own as its instances have threads:
	// with fewer they only take turns.
	Curve queuesim.ServiceCurve
	// Doubt is the standard deviation of the logarithm of the times of a curve that was not measured but
	// expected of the engine process; 0 for a measured one.
	Doubt float64
	// Opening is the time that it takes to measure the curve, before the first trial; 0 once it is.
	Opening time.Duration
}

// needs returns the cores of its own that an option needs.
func (o Option) needs() int { return max(1, max(o.Batcher.Instances, 1)*o.Curve.Threads) }

// fits reports whether an option can have some cores of its own. 0 cores: shared, on which all fit.
func (o Option) fits(cores int) bool { return cores == 0 || o.needs() <= cores }

// Settings are the inputs of a search.
type Settings struct {
	Models []Model
	Cores  int
	// Nodes are the processors of each NUMA node, at least Cores together; empty: one node has all.
	Nodes      []int
	IsShared   bool // cells on shared cores are allowed
	IsDivided  bool // cells on divided cores are
	Confidence float64
	Least      float64 // gain, in ln of the scale, above which another trial is made
	Costs      Costs
	Seed       uint64
	Tuning     Tuning
}

// Cell is an option of each model, and how the cores are shared.
type Cell struct {
	Options []int // index of each model's option; 0 for a model without load
	Cores   []int // of each model; nil: all share all of them
}

// key is the same exactly for equal cells.
func (c Cell) key() string { return fmt.Sprint(c.Options, c.Cores) }

// of returns the cores of a model; 0: shared.
func (c Cell) of(model int) int {
	if c.Cores == nil {
		return 0
	}
	return c.Cores[model]
}

// Trial is a cell at a scale.
type Trial struct {
	Cell
	Scale float64
	Why   string
}

// Outcome holds the latencies of a trial.
type Outcome struct {
	Trial Trial
	// Latencies of each model, in the order of its limits, in s; +Inf beyond its capacity, NaN where
	// nothing is known. A model without load has none.
	Latencies [][]float64
	// Errors are the standard deviations of the latencies' logarithms, in the same order. nil, and what
	// is less than Tuning.Reading, stands for that.
	Errors [][]float64
}

// Answer is the cell with the largest scale that is kept surely enough, among those that were measured.
type Answer struct {
	Cell
	Scale   float64 // kept by all with the confidence
	Median  float64 // the most likely largest scale
	Binding int     // index of the model that least surely keeps its limits at the scale
	Trials  int     // of the cell
}

// Search is the strategy.
type Search struct {
	settings  Settings
	models    []int // indices of the models with a load
	alone     map[aloneKey]prediction
	shared    map[string]sharedCell
	residuals []residuals // of each model
	outcomes  []Outcome
	trials    map[string]int // by cell
	measured  []Cell
	excluded  map[string]bool // cells that are never measured again, by key
	broken    map[poolKey]bool
	running   *Cell
	promising []Cell // that may be measured
	next      *next  // nil after an outcome
	simulator queuesim.Simulator

	// what is believed since the latest outcome
	believed map[believedKey]slowdown
	rankings map[[2]int][]ranked // by model and cores

	contenders [][]ranked // of each model on shared cores
}

// sharedCell has the margins of a cell on shared cores, by the logarithm of the scale.
type sharedCell struct {
	options     []int
	margins     []margin
	alone       float64 // ln of the scale up to which each model alone keeps its limits; of the lowest load for one that never does
	isSimulated bool    // with all models together
}

// poolKey is an engine process of a model.
type poolKey struct {
	model int
	pool  string
}

// believedKey is a model with its site.
type believedKey struct {
	model int
	site
}

// New returns a search before its first trial. The error names a model that cannot be placed.
func New(s Settings) (*Search, error) {
	x := &Search{settings: s, alone: map[aloneKey]prediction{}, shared: map[string]sharedCell{}, trials: map[string]int{},
		excluded: map[string]bool{}, broken: map[poolKey]bool{}}
	x.settings.Confidence = cmp.Or(s.Confidence, 0.95)
	x.forget()
	for i, m := range s.Models {
		x.residuals = append(x.residuals, residuals{deviations: s.Tuning.Deviations})
		if m.Load.Level() == 0 {
			continue
		}
		x.models = append(x.models, i)
		if len(m.Limits) == 0 {
			return nil, fmt.Errorf("cannot place model %q: it has no limit on its latency", m.Name)
		}
		if !slices.ContainsFunc(m.Options, func(o Option) bool { return s.IsShared || o.fits(s.Cores) }) {
			return nil, fmt.Errorf("cannot place model %q: its configurations need more than %s", m.Name, words.Count(s.Cores, "core"))
		}
	}
	x.promote()
	return x, nil
}

// cost returns the time of a trial of a cell after those so far.
func (x *Search) cost(c Cell) time.Duration {
	costs := x.settings.Costs
	switch {
	case x.running == nil || !slices.Equal(x.running.Cores, c.Cores) || x.pools(*x.running) != x.pools(c):
		opening := time.Duration(0)
		for _, i := range x.models {
			opening += x.settings.Models[i].Options[c.Options[i]].Opening
		}
		return costs.Launch + opening + costs.Trial
	case x.running.key() != c.key():
		return costs.Change + costs.Trial
	}
	return costs.Trial
}

// pools returns the keys of a cell's engine processes.
func (x *Search) pools(c Cell) string {
	var keys []string
	for _, i := range x.models {
		keys = append(keys, x.settings.Models[i].Options[c.Options[i]].Pool)
	}
	return strings.Join(keys, "\n")
}
