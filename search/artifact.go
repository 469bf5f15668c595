package search

import (
	"fmt"
	"slices"

	"tuner/model/precision/recipe"
	"tuner/ort/provider"
	"tuner/ort/sessionoption"
)

// The folding rules about the file, ONNX Runtime's build, the execution provider and their options.

func ignoredByTriton(f folding, values []Value) string {
	if !f.space.Facts.TritonOnly {
		return ""
	}
	reason := ""
	for _, k := range f.space.Knobs {
		if !isHonouredByTriton(k.Name) && f.set(values, k.Name, "") && reason == "" {
			reason = fmt.Sprintf("a stock Triton does not honour %s (deploy_target: tuner does)", k.Name)
		}
	}
	if i, ok := f.index[KnobRuntime]; ok && f.set(values, KnobRuntime, f.space.Knobs[i].Values[0]) && reason == "" {
		reason = "a stock Triton has one runtime (deploy_target: tuner compares several)"
	}
	return reason
}

// isHonouredByTriton reports whether Triton's onnxruntime backend reads a knob from the
// configuration.
func isHonouredByTriton(knob string) bool {
	if of, _, isOption := ProviderOption(knob); isOption {
		return provider.Of(of).Triton.TakesOptions()
	}
	return !sessionoption.IsKnob(knob) || sessionoption.OfTriton(knob)
}

// foreignOption removes the options of all execution providers except the chosen one and its
// fallback.
func foreignOption(f folding, values []Value) string {
	reason, chosen := "", provider.Of(f.provider(values))
	for _, k := range f.space.Knobs {
		of, _, isOption := ProviderOption(k.Name)
		isUsed := of == chosen.Name || of == chosen.Behind
		if isOption && !isUsed && f.set(values, k.Name, "") && reason == "" {
			reason = fmt.Sprintf("%s has no effect on another execution provider", k.Name)
		}
	}
	return reason
}

// threadsKnob returns the knob for the threads of a provider that has its own; "" if it has none.
func threadsKnob(p provider.Provider) string {
	if p.Threads.Option == "" {
		return ""
	}
	return p.Name + "." + p.Threads.Option
}

// ownThreads removes intra_op_threads if the provider has only its own threads. A stock Triton
// passes it no thread number, unless it takes the provider's options.
func ownThreads(f folding, values []Value) string {
	chosen := provider.Of(f.provider(values))
	if !chosen.Threads.Only || !f.set(values, KnobIntraOpThreads, IntValue(0)) {
		return ""
	}
	if f.space.Facts.TritonOnly && !chosen.Triton.TakesOptions() {
		return "in a stock Triton " + chosen.Title + " chooses its own threads, so intra_op_threads has no effect on it"
	}
	return chosen.Title + " has threads of its own (" + threadsKnob(chosen) + "), so intra_op_threads has no effect on it"
}

// provider returns the execution provider of a combination: its own, else the default
// configuration's.
func (f folding) provider(values []Value) string {
	return string(f.valueOrBase(values, KnobExecutionProvider, provider.CPU))
}

// valueOrBase returns a knob's value in a combination, else the default configuration's, else
// usual.
func (f folding) valueOrBase(values []Value, knob string, usual Value) Value {
	if v := f.value(values, knob); v != "" {
		return v
	}
	if v, known := f.space.Facts.base(knob); known {
		return v
	}
	return usual
}

// runtime returns the build that serves a combination. Without the knob it has no name.
func (f folding) runtime(values []Value) RuntimeFacts {
	facts := f.space.Facts
	if len(facts.Runtimes) == 0 {
		return RuntimeFacts{Unavailable: facts.Unavailable}
	}
	name := string(f.value(values, KnobRuntime))
	return facts.Runtimes[max(0, slices.IndexFunc(facts.Runtimes, func(r RuntimeFacts) bool { return r.Name == name }))]
}

func unavailableProvider(f folding, values []Value) string {
	chosen := f.provider(values) // the default's if the space has no such knob: one of the builds may lack it
	runtime, where := f.runtime(values), "here"
	if runtime.Name != "" {
		where = "in runtime " + runtime.Name
	}
	if reason, ok := runtime.Unavailable[chosen]; ok {
		return fmt.Sprintf("execution_provider %s is not available %s: %s", chosen, where, reason)
	}
	if f.space.Facts.TritonOnly && provider.Of(chosen).Triton == provider.Missing {
		return fmt.Sprintf("a stock Triton has no execution_provider %s (deploy_target: tuner does)", chosen)
	}
	return ""
}

// rejectedVariant excludes variants that the accuracy check rejected.
func rejectedVariant(f folding, values []Value) string {
	precision, chosen := string(f.valueOrBase(values, KnobPrecision, recipe.Original)), f.provider(values)
	for _, r := range f.space.Facts.Rejected {
		switch {
		case r.Precision != precision:
		case r.Provider == "":
			return fmt.Sprintf("precision %s is rejected: %s", precision, r.Reason)
		case r.Provider == chosen && r.Runtime == "":
			return fmt.Sprintf("precision %s is rejected on execution_provider %s: %s", precision, chosen, r.Reason)
		case r.Provider == chosen && r.Runtime == f.runtime(values).Name:
			return fmt.Sprintf("precision %s is rejected on execution_provider %s in runtime %s: %s", precision, chosen, r.Runtime, r.Reason)
		}
	}
	return ""
}

func missingPrecision(f folding, values []Value) string {
	precision := string(f.value(values, KnobPrecision))
	if precision == "" || slices.Contains(f.space.Facts.Precisions, precision) {
		return ""
	}
	return fmt.Sprintf("there is no model file with precision %s", precision)
}
