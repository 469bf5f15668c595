package knobs

import (
	"slices"
	"time"

	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/model/precision/recipe"
	"tuner/ort/provider"
	"tuner/ort/sessionoption"
	"tuner/search"
)

// Base returns the knob values of a complete configuration: Apply with one of them changes nothing.
// It omits knobs without such a value, such as max_batch_size for a configuration that batches
// without the dynamic batcher. An absent setting has the engine's default. Base omits session
// options that cannot be read; Apply reports them.
func Base(config *modelconfig.Config) map[string]search.Value {
	o, err := modelconfig.ORTOptions(config)
	if err != nil {
		return fieldsBase(config)
	}
	return baseWith(config, o)
}

// baseWith is Base for a configuration with these session options, which the caller has already
// read.
func baseWith(config *modelconfig.Config, o modelconfig.Options) map[string]search.Value {
	base := fieldsBase(config)
	of := Provider(config, o)
	base[search.KnobExecutionProvider] = search.Value(of)
	sessionBase(base, o, of)
	return base
}

// fieldsBase returns the values of the knobs that are not session options.
func fieldsBase(config *modelconfig.Config) map[string]search.Value {
	base := map[string]search.Value{search.KnobPrecision: recipe.Original}
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

// sessionBase adds the values of the knobs that are session options to base. of is the execution
// provider that the configuration names.
func sessionBase(base map[string]search.Value, o modelconfig.Options, of string) {
	for _, option := range sessionoption.All() {
		value, known := o.Get(option)
		if known && o.Settings.Meets(option.Needs) && !isPoolsOwn(o, option, of) {
			base[option.Name] = search.Value(value)
		}
	}
}

// isPoolsOwn reports whether the execution provider changes the default of an option, since it has
// a thread pool beside ONNX Runtime's (modelconfig.Options.Given).
func isPoolsOwn(o modelconfig.Options, option sessionoption.Option, of string) bool {
	return option.Name == sessionoption.AllowSpinning && provider.Of(of).HasPoolBeside() &&
		slices.ContainsFunc(option.Entries, func(key string) bool { _, said := o.Session[key]; return !said })
}

// Provider returns the first execution provider of a configuration with these session options. This
// is the accelerator for the kind of its first instances. Without an accelerator it is cuda for
// instances on a GPU, else cpu.
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
