package search

import (
	"cmp"
	"fmt"
	"slices"

	"tuner/ort/provider"
	"tuner/ort/sessionoption"
)

// Combinations is the number of raw combinations of the knobs' values, before folding; at most
// limit.
func (s Space) Combinations(limit int) int {
	n := 1
	for _, k := range s.Knobs {
		n = times(n, len(k.Values))
	}
	return min(n, limit)
}

// Canonical returns the canonical candidate of a raw combination, or the reason why the combination
// is left out.
func (s Space) Canonical(raw Candidate) (c Candidate, illegal string) {
	if s.IsSeveral() {
		return s.canonicalParts(raw)
	}
	f := newFolding(s)
	values := f.values(raw)
	v := part{rules: f}.fold(values).and(part{rules: f, isBatcher: true}.fold(values))
	if v.illegal != "" {
		return Candidate{}, v.illegal
	}
	return f.candidate(values), ""
}

// rule is one of the folding rules. It looks either at the batcher's knobs, or at others
// (Candidates relies on that).
type rule struct {
	apply     func(folding, []Value) string
	isBatcher bool
}

// The rules, ordered by the priority of their reasons: first those that rewrite a combination into
// an equivalent one, then those that leave it out.
var (
	merging = [...]rule{
		{apply: ignoredByTriton}, {apply: foreignOption}, {apply: ownThreads}, {noBatchDimension, true}, {batchOfOne, true}, {idlePadding, true}, {apply: needless}, {apply: idleSharing},
	}
	refusing = [...]rule{
		{apply: unavailableProvider}, {apply: rejectedVariant}, {apply: missingPrecision},
		{withoutBatchDimension, true}, {preferredTooLarge, true}, {clientBatchTooLarge, true}, {apply: tooManyThreads},
	}
)

// folding holds the rules, prepared for one space.
type folding struct {
	space Space
	index map[string]int         // index of a knob in the space
	needy []sessionoption.Option // session options of the space that need a value of another option
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

// candidate makes a candidate from values in the space's order; "" is a knob that is not set.
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

// none returns a combination that sets no knob.
func (f folding) none() []Value { return make([]Value, len(f.space.Knobs)) }

// values returns a candidate's values, in the space's order.
func (f folding) values(c Candidate) []Value {
	values := f.none()
	for i, k := range f.space.Knobs {
		values[i], _ = c.Get(k.Name)
	}
	return values
}

// value returns a knob's value in a combination; "" if the space lacks it or the combination does
// not set it.
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

// set changes a knob that is set, and reports whether its value was different.
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

// withoutBatchDimension rejects max_batch_size 0 for models with a batch dimension. The dims of a
// configuration with batching omit that dimension, and 0 would remove it.
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
	delay, preferred := f.set(values, KnobMaxQueueDelay, DurationValue(0)), f.set(values, KnobPreferredBatchSize, IntsValue(nil))
	if delay || preferred {
		return "a batch of one never waits, so queue delay and preferred sizes have no effect with max_batch_size ≤ 1"
	}
	return ""
}

// needless sets session options to one value if another option's value makes them ineffective.
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

// idleSharing gives instances a session each where nothing is shared.
func idleSharing(f folding, values []Value) string {
	isAlone := f.valueOrBase(values, KnobInstanceCount, "") == "1" || provider.OnGPU(f.provider(values))
	if isAlone && f.set(values, sessionoption.ShareSession, sessionoption.Off) {
		return "share_session has no effect on one instance, or on a GPU, where each instance has a session"
	}
	return ""
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

// tooManyThreads checks every thread pool of an instance: ONNX Runtime's, and the provider's own.
func tooManyThreads(f folding, values []Value) string {
	chosen := provider.Of(f.provider(values))
	own := threadsKnob(chosen)
	if _, set := f.integer(values, own); set && chosen.Threads.Only {
		return tooManyOf(f, values, own)
	}
	return cmp.Or(tooManyOf(f, values, KnobIntraOpThreads), tooManyOf(f, values, own))
}

// tooManyOf counts 0 threads, ONNX Runtime's default, as one thread per core.
func tooManyOf(f folding, values []Value, knob string) string {
	cores := f.space.Facts.Cores
	threads, ok := f.integer(values, knob)
	if !ok || cores == 0 {
		return ""
	}
	threads = cmp.Or(threads, cores)
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
