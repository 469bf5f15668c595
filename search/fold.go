package search

import (
	"cmp"
	"fmt"
	"slices"

	"tuner/ort/provider"
	"tuner/ort/sessionoption"
)

// Combinations is the number of raw combinations of the knobs' values, before folding; at most limit.
func (s Space) Combinations(limit int) int {
	n := 1
	for _, k := range s.Knobs {
		n = times(n, len(k.Values))
	}
	return min(n, limit)
}

// Canonical returns the candidate that stands for a raw combination, or the reason why the combination is left out.
func (s Space) Canonical(raw Candidate) (c Candidate, illegal string) {
	f := newFolding(s)
	values := f.values(raw)
	v := part{rules: f}.fold(values).and(part{rules: f, isBatcher: true}.fold(values))
	if v.illegal != "" {
		return Candidate{}, v.illegal
	}
	return f.candidate(values), ""
}

// rule is one of the folding rules. It looks either at the batcher's knobs, or at others (Candidates counts on that).
type rule struct {
	apply     func(folding, []Value) string
	isBatcher bool
}

// The rules, in the order in which their reasons count: those that rewrite a combination into an equivalent one, and those that
// leave it out.
var (
	merging = [...]rule{
		{apply: ignoredByTriton}, {apply: foreignOption}, {apply: ownThreads}, {noBatchDimension, true}, {batchOfOne, true}, {apply: needless},
	}
	refusing = [...]rule{
		{apply: unavailableProvider}, {apply: rejectedVariant}, {apply: missingPrecision},
		{withoutBatchDimension, true}, {preferredTooLarge, true}, {clientBatchTooLarge, true}, {apply: tooManyThreads},
	}
)

// folding is the rules, prepared for one space.
type folding struct {
	space Space
	index map[string]int         // a knob's place in the space
	needy []sessionoption.Option // session options of the space that need another one's value
}

func newFolding(s Space) folding {
	f := folding{space: s, index: make(map[string]int, len(s.Knobs))}
	for i, k := range s.Knobs {
		f.index[k.Name] = i
		if o, known := sessionoption.Find(k.Name); known && o.Needs.Option != "" {
			f.needy = append(f.needy, o)
		}
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

// none is a combination that leaves every knob alone.
func (f folding) none() []Value { return make([]Value, len(f.space.Knobs)) }

// values are a candidate's, in the space's order.
func (f folding) values(c Candidate) []Value {
	values := f.none()
	for i, k := range f.space.Knobs {
		values[i], _ = c.Get(k.Name)
	}
	return values
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

// needless gives the session options that have no effect beside another option's value one value.
func needless(f folding, values []Value) string {
	reason := ""
	for _, o := range f.needy {
		other := f.value(values, o.Needs.Option)
		isMet := other == "" || other == Value(o.Needs.Value)
		if !isMet && f.set(values, o.Name, Value(o.Needs.Idle)) && reason == "" {
			reason = fmt.Sprintf("%s has no effect with %s %s", o.Name, o.Needs.Option, other)
		}
	}
	return reason
}

func preferredTooLarge(f folding, values []Value) string {
	batch, ok := f.integer(values, KnobMaxBatchSize)
	if !ok {
		batch = f.space.Facts.defaultBatch()
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

// tooManyThreads looks at every thread pool that an instance has: ONNX Runtime's, and the provider's own.
func tooManyThreads(f folding, values []Value) string {
	chosen := provider.Of(f.provider(values))
	own := threadsKnob(chosen)
	if _, set := f.integer(values, own); set && chosen.Threads.Only {
		return tooManyOf(f, values, own)
	}
	return cmp.Or(tooManyOf(f, values, KnobIntraOpThreads), tooManyOf(f, values, own))
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
	if instances := f.space.Facts.InstanceGroups[f.value(values, KnobInstanceGroup)]; threads*instances > 2*cores {
		return fmt.Sprintf("oversubscribed: %s × the instances of instance_group is more than twice the %d cores", knob, cores)
	}
	return ""
}
