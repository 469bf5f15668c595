package spec

import (
	"cmp"
	"time"

	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/ort/provider"
	"tuner/search"
)

// Base returns the knobs' values that a complete configuration has: Apply with one of them changes nothing. Knobs for which
// no value does that are missing, such as max_batch_size for a configuration that batches without the dynamic batcher. What is
// not said counts as what the engine makes of that. Nothing is returned of session options that cannot be read: Apply reports them.
func Base(config *modelconfig.Config) map[string]search.Value {
	o, err := modelconfig.ORTOptions(config)
	if err != nil {
		return fieldsBase(config)
	}
	return baseWith(config, o)
}

// baseWith is Base for a configuration with these session options, which the caller has read.
func baseWith(config *modelconfig.Config, o modelconfig.Options) map[string]search.Value {
	base := fieldsBase(config)
	sessionBase(base, o)
	of := Provider(config, o)
	base[search.KnobExecutionProvider] = search.Value(of)
	if on, known := spins(o, of); known {
		base[search.KnobAllowSpinning] = search.BoolValue(on)
	}
	return base
}

// fieldsBase returns the values of the knobs that are no session options.
func fieldsBase(config *modelconfig.Config) map[string]search.Value {
	base := map[string]search.Value{search.KnobPrecision: PrecisionOriginal}
	if groups := config.GetInstanceGroup(); len(groups) == 1 {
		base[search.KnobInstanceCount] = search.IntValue(int(groups[0].GetCount()))
	}
	batcher := config.GetDynamicBatching()
	if batcher != nil || config.GetMaxBatchSize() == 0 {
		base[search.KnobMaxBatchSize] = search.IntValue(int(config.GetMaxBatchSize()))
	}
	delay := time.Duration(batcher.GetMaxQueueDelayMicroseconds()) * time.Microsecond
	base[search.KnobMaxQueueDelay] = search.DurationValue(delay)
	sizes := mapped(batcher.GetPreferredBatchSize(), func(n int32) int { return int(n) })
	base[search.KnobPreferredBatchSize] = search.IntsValue(sizes)
	return base
}

// sessionBase fills in the knobs that are session options.
func sessionBase(base map[string]search.Value, o modelconfig.Options) {
	base[search.KnobIntraOpThreads] = search.IntValue(o.IntraOpThreads)
	base[search.KnobExecutionMode] = "sequential"
	if o.Parallel {
		base[search.KnobExecutionMode] = "parallel"
		base[search.KnobInterOpThreads] = search.IntValue(o.InterOpThreads)
	}
	base[search.KnobMemoryArena] = search.BoolValue(o.MemoryArena != modelconfig.Off)
	base[search.KnobMemoryPattern] = search.BoolValue(o.MemoryPattern != modelconfig.Off)
	levels := map[modelconfig.GraphLevel]search.Value{
		modelconfig.GraphAll: "all", modelconfig.GraphExtended: "extended", modelconfig.GraphBasic: "basic", modelconfig.GraphDisabled: "disable",
	}
	base[search.KnobGraphOptimization] = levels[o.Graph]
}

// The session entries behind allow_spinning.
const (
	intraSpinning = "session.intra_op.allow_spinning"
	interSpinning = "session.inter_op.allow_spinning"
)

// spins reports whether idle threads wait busily, in both of ONNX Runtime's thread pools; they do unless told otherwise. It is not
// known of pools that differ, nor where a provider has a pool of its own beside them, unless both entries are there: the default is
// another one then (modelconfig.Options.Given).
func spins(o modelconfig.Options, of string) (on, known bool) {
	first, saidFirst := o.Session[intraSpinning]
	second, saidSecond := o.Session[interSpinning]
	if provider.Of(of).HasPoolBeside() && !(saidFirst && saidSecond) {
		return false, false
	}
	first, second = cmp.Or(first, "1"), cmp.Or(second, "1")
	return first == "1", first == second && (first == "0" || first == "1")
}

// Provider returns the execution provider that a configuration with these session options asks for first: the accelerator
// for the kind of its first instances, cuda for those on a GPU without one, else cpu.
func Provider(config *modelconfig.Config, o modelconfig.Options) string {
	groups := config.GetInstanceGroup()
	accelerators, usual := o.CPUAccelerators, provider.CPU
	if len(groups) > 0 && groups[0].GetKind() == configpb.ModelInstanceGroup_KIND_GPU {
		accelerators, usual = o.GPUAccelerators, provider.CUDA
	}
	if len(accelerators) > 0 {
		return accelerators[0].Name
	}
	return usual
}
