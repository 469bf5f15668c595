package spec

import (
	"maps"
	"math/bits"
	"slices"

	"tuner/measure"
	"tuner/ort/provider"
	"tuner/search"
	"tuner/spec/document"
	"tuner/spec/knobs"
)

// space reads the knobs.
func (r profileReader) space(v document.Value) {
	s := knobs.Read(v, r.p.Path, r.p.Accuracy.Unchecked)
	r.p.Knobs, r.p.Model.Convert, r.p.Model.Precisions = s.Knobs, s.Convert, s.Precisions
}

// knob returns the knob with that name, and false if the space has none.
func (p Profile) knob(name string) (search.Knob, bool) { return knobs.Find(p.Knobs, name) }

// Space returns the space of the campaign on the machine and with the model that facts describe. It
// replaces `auto` and a missing `space:` or `concurrency:` by values, and completes the names of
// runtimes. It sets Facts.TritonOnly and Facts.Precisions from the profile.
//
// The space of several models has a part for each, with the facts of its model (Facts.Parts).
func (p Profile) Space(facts search.Facts) search.Space {
	if p.IsSeveral() {
		return p.severalSpace(facts)
	}
	facts.TritonOnly = p.DeployTarget == TargetTriton
	facts.Precisions = slices.Sorted(maps.Keys(p.Model.Precisions))
	facts.Precisions = append(facts.Precisions, p.Model.Convert...)
	s := search.Space{Knobs: slices.Clone(p.Knobs), Load: withTrace(p.Load, facts.Trace), Facts: facts}
	if s.Knobs == nil {
		s.Knobs = defaultKnobs(facts)
	}
	for i, k := range s.Knobs {
		switch {
		case k.Name == search.KnobExecutionProvider:
			s.Knobs[i].Values = p.expandAuto(k.Values)
		case k.Name == search.KnobRuntime && len(facts.Runtimes) > 0:
			s.Knobs[i].Values = mapped(facts.Runtimes, func(r search.RuntimeFacts) search.Value { return search.Value(r.Name) })
		case k.Name == search.KnobInstanceGroup:
			s.Facts.InstanceGroups = map[search.Value]int{}
			for _, v := range k.Values {
				s.Facts.InstanceGroups[v] = knobs.GroupInstances(v, s.Facts.GPUs)
			}
		}
	}
	if s.Load.Levels == nil && s.Load.Rate { // a trace that was not read
		s.Load.Levels = []float64{1}
	}
	if s.Load.Levels == nil {
		s.Load.Levels = autoLevels(s)
		s.Load.Any = true
		if p.Mode == ModeOffline { // the queue is never empty, so lower loads give no information
			s.Load.Levels, s.Load.Any = s.Load.Levels[len(s.Load.Levels)-1:], false
		}
	}
	return s
}

// Runtimes returns the selectors of ONNX Runtime builds in the file's order (cpu, openvino@1.24.1);
// nil without the knob.
func (p Profile) Runtimes() []string {
	k, has := p.knob(search.KnobRuntime)
	if !has {
		return nil
	}
	return mapped(k.Values, func(v search.Value) string { return string(v) })
}

// Settings returns the settings of the search strategy.
func (p Profile) Settings(facts search.Facts) search.Settings {
	return search.Settings{
		Space:  p.Space(facts),
		Goal:   p.Goal,
		Budget: p.Search.Budget,
		Seed:   p.Search.Seed,
		Window: p.Search.Window,

		Confidence: p.Search.Confidence,
		Until:      p.Search.Until,
		Elsewhere:  p.Finals != nil,
		Turns:      p.takesTurns(),
	}
}

// takesTurns reports whether engines may be measured in turn. This requires that the server of the
// final trials is launched here, so that it can be paused. Engines that take turns are on the GPUs
// together, and drivers report only their total memory. Therefore a goal with GPU memory excludes
// turns.
func (p Profile) takesTurns() bool {
	if slices.Contains(p.Goal.Metrics(), measure.GPUMemory) {
		return false
	}
	if p.Finals != nil {
		return p.Finals.Mode != RunnerRemote
	}
	return p.Runner.Mode != RunnerRemote
}

// providers lists the execution providers that a configuration for the target can name. The one of a
// library of its own counts only if the profile names that library.
func (p Profile) providers() []string {
	if p.DeployTarget != TargetTuner {
		return provider.OfTriton()
	}
	return slices.DeleteFunc(provider.Names(), func(name string) bool { return provider.Of(name).Apart && p.Model.Libraries.Provider == "" })
}

// expandAuto replaces `auto` by every provider of the target. The search folds those in
// Facts.Unavailable, with their reason, so that the user sees them.
func (p Profile) expandAuto(values []search.Value) []search.Value {
	var expanded []search.Value
	add := func(v search.Value) {
		if !slices.Contains(expanded, v) {
			expanded = append(expanded, v)
		}
	}
	for _, v := range values {
		if v != knobs.Auto {
			add(v)
			continue
		}
		for _, name := range p.providers() {
			add(search.Value(name))
		}
	}
	return expanded
}

// The limits of the default space.
const (
	mostDefaultInstances = 4
	largestDefaultBatch  = 32
)

// defaultKnobs is the space of a profile without one: threads, instances and, for a model with a
// batch dimension, batches. It has no threads if the default computes on GPUs, since they do not
// matter there.
//
// A model of another backend has none: what its instances cost is not known, so they stay as they are.
func defaultKnobs(facts search.Facts) []search.Knob {
	if facts.IsForeign {
		return nil
	}
	cores := max(1, facts.Cores)
	knobs := []search.Knob{
		{Name: search.KnobInstanceCount, Scope: search.ScopePool, Values: intValues(DefaultInstances(cores))},
	}
	if !provider.OnGPU(string(facts.Base[search.KnobExecutionProvider])) {
		threads := search.Knob{Name: search.KnobIntraOpThreads, Scope: search.ScopeEngine, Values: intValues(DefaultThreads(cores))}
		knobs = append([]search.Knob{threads}, knobs...)
	}
	if !facts.Batching {
		return knobs
	}
	return append(knobs,
		search.Knob{Name: search.KnobMaxBatchSize, Scope: search.ScopeBatcher, Values: intValues(powers(largestDefaultBatch))},
		search.Knob{Name: search.KnobMaxQueueDelay, Scope: search.ScopeBatcher, Values: []search.Value{search.DurationValue(0)}},
	)
}

// powers returns 1, 2, 4 … up to n, and n itself.
func powers(n int) []int {
	var list []int
	for p := 1; p < n; p *= 2 {
		list = append(list, p)
	}
	return append(list, n)
}

// upTo returns 1, 2, 3 … n.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i + 1
	}
	return list
}

func intValues(ns []int) []search.Value { return mapped(ns, search.IntValue) }

// The limits of the load axis for auto.
const (
	leastAutoConcurrency = 64
	mostAutoConcurrency  = 1024
)

// autoLevels returns the load axis for `auto`, in powers of two. It ends at four full batches for
// every instance of the largest pool or of the default configuration. Two batches keep every
// instance busy while the next batch fills (the knee). Twice that shows the region where more
// clients only wait.
func autoLevels(s search.Space) []float64 {
	largest := search.Candidate{}
	for _, k := range s.Knobs {
		switch k.Name {
		case search.KnobMaxBatchSize, search.KnobInstanceCount:
			largest = largest.With(k.Name, search.IntValue(largestInt(k, 1)))
		case search.KnobInstanceGroup:
			byInstances := func(a, b search.Value) int { return s.Facts.InstanceGroups[a] - s.Facts.InstanceGroups[b] }
			largest = largest.With(k.Name, slices.MaxFunc(k.Values, byInstances))
		}
	}
	most := 2 * max(s.Knee(largest), s.Knee(search.Candidate{}))
	bounded := int(min(max(most, leastAutoConcurrency), mostAutoConcurrency))
	return mapped(powers(1<<bits.Len(uint(bounded-1))), func(n int) float64 { return float64(n) })
}

// mapped applies f to each element.
func mapped[A, B any](list []A, f func(A) B) []B {
	result := make([]B, len(list))
	for i, x := range list {
		result[i] = f(x)
	}
	return result
}
