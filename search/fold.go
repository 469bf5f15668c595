package search

import (
	"cmp"
	"fmt"
	"slices"
)

// Combinations is the number of raw combinations of the knobs' values, before folding; at most limit.
func (s Space) Combinations(limit int) int {
	n := 1
	for _, k := range s.Knobs {
		n *= len(k.Values)
		if n == 0 || n >= limit {
			return min(n, limit)
		}
	}
	return n
}

// Candidates expands the space into its candidates: each legal combination once, in an order that goes through the values
// of the dearest scope slowest, so that candidates of one pool are neighbours. The folds say which combinations were left
// out or merged into others, and why: one of the candidates or folds counts each raw combination.
func (s Space) Candidates() ([]Candidate, []Fold) {
	rules := newFolding(s)
	seen := make(map[string]bool)
	folds := foldCounter{at: map[string]int{}}
	var candidates []Candidate
	s.each(func(values []Value) {
		merged, illegal := rules.apply(values)
		if illegal != "" {
			folds.add(illegal, "", 1)
			return
		}
		c := rules.candidate(values)
		key := c.Key()
		repeated := seen[key] || c.IsDefault()
		switch {
		case merged != "" && repeated:
			folds.add(merged, key, 1)
		case merged != "":
			folds.add(merged, key, 0)
		case repeated:
			folds.add("the same value is listed twice", key, 1)
		}
		if !repeated {
			seen[key] = true
			candidates = append(candidates, c)
		}
	})
	return candidates, folds.list
}

// Canonical returns the candidate that stands for a raw combination, or the reason why the combination is left out.
func (s Space) Canonical(raw Candidate) (c Candidate, illegal string) {
	values := make([]Value, len(s.Knobs))
	for i, k := range s.Knobs {
		values[i], _ = raw.Get(k.Name)
	}
	rules := newFolding(s)
	if _, illegal := rules.apply(values); illegal != "" {
		return Candidate{}, illegal
	}
	return rules.candidate(values), ""
}

// each calls visit with every combination, in the space's knob order; visit may change the slice. Knobs of the dearest
// scope turn slowest.
func (s Space) each(visit func([]Value)) {
	turning := make([]int, len(s.Knobs)) // indexes of knobs, dearest first
	for i := range turning {
		turning[i] = i
	}
	slices.SortStableFunc(turning, func(a, b int) int {
		return int(poolScope(s.Knobs[a].Name)) - int(poolScope(s.Knobs[b].Name))
	})
	values := make([]Value, len(s.Knobs))
	var turn func(chosen []Value, rest []int)
	turn = func(chosen []Value, rest []int) {
		if len(rest) == 0 {
			copy(values, chosen)
			visit(values)
			return
		}
		for _, v := range s.Knobs[rest[0]].Values {
			chosen[rest[0]] = v
			turn(chosen, rest[1:])
		}
	}
	if len(s.Knobs) > 0 {
		turn(make([]Value, len(s.Knobs)), turning)
	}
}

// poolScope is the scope that PoolKey sees: a knob that is not known is part of the pool.
func poolScope(knob string) Scope {
	scope, known := KnobScope(knob)
	if !known {
		return ScopePool
	}
	return scope
}

// foldCounter sums folds by reason, in the order of their first appearance.
type foldCounter struct {
	list []Fold
	at   map[string]int
}

func (f *foldCounter) add(reason, into string, count int) {
	i, ok := f.at[reason]
	if !ok {
		i = len(f.list)
		f.at[reason] = i
		f.list = append(f.list, Fold{Reason: reason, Into: into})
	}
	f.list[i].Count += count
}

// folding is the rules, prepared for one space.
type folding struct {
	space Space
	index map[string]int // a knob's place in the space
}

func newFolding(s Space) folding {
	f := folding{s, make(map[string]int, len(s.Knobs))}
	for i, k := range s.Knobs {
		f.index[k.Name] = i
	}
	return f
}

// candidate makes a candidate of values in the space's order, "" being a knob that is left alone.
func (f folding) candidate(values []Value) Candidate {
	settings := make([]Setting, 0, len(values))
	for i, v := range values {
		if v != "" {
			settings = append(settings, Setting{f.space.Knobs[i].Name, v})
		}
	}
	if len(settings) == 0 {
		return Candidate{}
	}
	return Candidate{settings}
}

// apply rewrites a combination into its canonical form, and says why that differs; or says why it is illegal.
func (f folding) apply(values []Value) (merged, illegal string) {
	for _, rule := range []func(folding, []Value) string{
		ignoredByTriton, foreignOption, ownThreads, noBatchDimension, batchOfOne, sequential,
	} {
		if reason := rule(f, values); reason != "" && merged == "" {
			merged = reason
		}
	}
	for _, rule := range []func(folding, []Value) string{
		unavailableProvider, rejectedVariant, missingPrecision, withoutBatchDimension, preferredTooLarge, clientBatchTooLarge, tooManyThreads,
	} {
		if reason := rule(f, values); reason != "" {
			return "", reason
		}
	}
	return merged, ""
}

// value returns a knob's value in a combination, "" when the space or the combination leaves it alone.
func (f folding) value(values []Value, knob string) Value {
	if i, ok := f.index[knob]; ok {
		return values[i]
	}
	return ""
}

// integer is value for integer knobs.
func (f folding) integer(values []Value, knob string) (int, bool) {
	v := f.value(values, knob)
	if v == "" {
		return 0, false
	}
	n, err := v.Int()
	return n, err == nil
}

// set changes a knob that has a value, and reports whether it had another one.
func (f folding) set(values []Value, knob string, v Value) bool {
	i, ok := f.index[knob]
	if !ok || values[i] == "" || values[i] == v {
		return false
	}
	values[i] = v
	return true
}

func noBatchDimension(f folding, values []Value) string {
	if !f.space.Facts.Batching && f.set(values, KnobMaxBatchSize, IntValue(0)) {
		return "the model has no batch dimension, or its configuration counts it among the dims, so max_batch_size is 0"
	}
	return ""
}

// withoutBatchDimension: the dims of a configuration with batching leave the batch dimension out, and 0 would take it away.
func withoutBatchDimension(f folding, values []Value) string {
	if batch, ok := f.integer(values, KnobMaxBatchSize); ok && batch == 0 && f.space.Facts.Batching {
		return "max_batch_size 0 is for models without a batch dimension"
	}
	return ""
}

func batchOfOne(f folding, values []Value) string {
	batch, ok := f.integer(values, KnobMaxBatchSize)
	if f.space.Facts.Batching && !ok || batch > 1 {
		return ""
	}
	delay := f.set(values, KnobMaxQueueDelay, DurationValue(0))
	preferred := f.set(values, KnobPreferredBatchSize, IntsValue(nil))
	if delay || preferred {
		return "a batch of one never waits, so queue delay and preferred sizes have no effect with max_batch_size ≤ 1"
	}
	return ""
}

func sequential(f folding, values []Value) string {
	if f.value(values, KnobExecutionMode) == "sequential" && f.set(values, KnobInterOpThreads, IntValue(1)) {
		return "inter_op_threads has no effect with execution_mode sequential"
	}
	return ""
}

func preferredTooLarge(f folding, values []Value) string {
	batch, ok := f.integer(values, KnobMaxBatchSize)
	if !ok {
		batch = cmp.Or(f.space.Facts.BaseMaxBatchSize, completedBatch)
	}
	preferred := f.value(values, KnobPreferredBatchSize)
	if preferred == "" {
		return ""
	}
	sizes, err := preferred.Ints()
	if err == nil && len(sizes) > 0 && slices.Max(sizes) > batch {
		return "a preferred_batch_size is larger than max_batch_size"
	}
	return ""
}

func clientBatchTooLarge(f folding, values []Value) string {
	client := f.space.Load.BatchSize
	if batch, ok := f.integer(values, KnobMaxBatchSize); ok && client > max(batch, 1) {
		return fmt.Sprintf("max_batch_size is smaller than the client batch of %d", client)
	}
	return ""
}

// tooManyThreads looks at every pool of threads that an instance has; foreignOption has left a provider's own to that provider.
func tooManyThreads(f folding, values []Value) string {
	knobs := []string{KnobIntraOpThreads, knobXNNPACKThreads}
	if _, set := f.integer(values, KnobOpenVINOThreads); set {
		knobs = []string{KnobOpenVINOThreads} // instead of ONNX Runtime's
	}
	for _, knob := range knobs {
		if reason := tooManyOf(f, values, knob); reason != "" {
			return reason
		}
	}
	return ""
}

// tooManyOf takes 0 threads, ONNX Runtime's default, for one thread per core.
func tooManyOf(f folding, values []Value, knob string) string {
	cores := f.space.Facts.Cores
	threads, ok := f.integer(values, knob)
	if !ok || cores == 0 {
		return ""
	}
	if threads == 0 {
		threads = cores
	}
	if threads > cores {
		return fmt.Sprintf("%s is more than the %d cores", knob, cores)
	}
	if instances, ok := f.integer(values, KnobInstanceCount); ok && threads*instances > 2*cores {
		return fmt.Sprintf("oversubscribed: %s × instance_count is more than twice the %d cores", knob, cores)
	}
	return ""
}
