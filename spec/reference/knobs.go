package reference

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tuner/model/modelconfig/configpb"
	"tuner/model/precision/recipe"
	"tuner/ort/addon"
	"tuner/ort/provider"
	"tuner/ort/sessionoption"
	"tuner/search"
	"tuner/spec/knobs"
)

// oneOrMore returns the schema of a value or a list of values.
func oneOrMore(schema string) string {
	return fmt.Sprintf(`{"anyOf": [%[1]s, {"type": "array", "minItems": 1, "items": %[1]s}]}`, schema)
}

// setting describes a knob, and the place of its value in config.pbtxt.
func setting(name string, t Type, meaning, lands string) Field {
	return Field{Name: name, Type: t, Without: "the default configuration's value", Meaning: strings.TrimSpace(meaning + " In config.pbtxt: " + lands + ".")}
}

// space describes the section with the knobs. hasPlugIn is true if the file can name a library with an
// execution provider.
func space(hasPlugIn bool) Field {
	return Field{Name: "space", Type: words("none"), Without: "[tuner's own choice](profile.md#knobs-space)",
		Meaning: "The knobs and their values. With `none` only the default is measured. Illegal and equivalent combinations are left out.",
		Fields:  append(sessionKnobs(hasPlugIn), serverKnobs()...), Others: otherKnobs()}
}

// sessionKnobs lists the knobs of sessions and their devices.
func sessionKnobs(hasPlugIn bool) []Field {
	providers, with := provider.Names(), "deploy_target: tuner\n"+addon.ProviderField+": provider.so"
	if !hasPlugIn {
		providers, with = slices.DeleteFunc(providers, func(name string) bool { return provider.Of(name).Apart }), "deploy_target: tuner"
	}
	precisions := list(words(recipe.Names()...))
	fields := []Field{
		{Name: search.KnobExecutionProvider, Type: list(words(append([]string{knobs.Auto}, providers...)...)), With: with, Without: "the default configuration's",
			Meaning: fmt.Sprintf("`auto` is each provider that creates a session for this model on this machine. With `deploy_target: triton` the values are `auto`, %s. [Execution providers](../design/providers.md) says how each lands in config.pbtxt.",
				quoted(provider.OfTriton()))},
		{Name: search.KnobRuntime, Type: list(text("cpu", "openvino@1.24.1", "./libonnxruntime.so")), Without: "`--ort-library`, or the usual build",
			Meaning: "ONNX Runtime builds: installed ones, or library files, whose paths have a slash. The first one serves the default. With `deploy_target: triton` only the first is measured, since a stock Triton has one. Contradicts `--ort-library`."},
		{Name: search.KnobPrecision, Type: Type{Name: precisions.Name + "; or a mapping: name to ONNX file",
			Schema: fmt.Sprintf(`{"anyOf": [%s, {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}]}`, precisions.Schema),
			Good:   append(precisions.Good, "{fp32: model.onnx, mine: small.onnx}"), Bad: precisions.Bad}, Without: recipe.Original,
			Meaning: strings.Join(recipe.Sentences("`"), " ") + " tuner makes the others from `fp32`. A file of your own must have the same inputs and outputs: names, types and numbers of dimensions. `tuner convert --keep-io` makes fp16 such a file."},
	}
	for _, option := range sessionoption.All() {
		fields = append(fields, sessionKnob(option))
	}
	return fields
}

// sessionKnob describes a session option by its row.
func sessionKnob(o sessionoption.Option) Field {
	var t Type
	switch o.Kind {
	case sessionoption.Threads:
		t = series(whole(0, 0), false)
	case sessionoption.Switch:
		t = list(flag())
	default:
		t = list(words(o.Words...))
	}
	meaning := o.About + "."
	if o.Needs.Option != "" {
		meaning += fmt.Sprintf(" It counts with `%s: %s` only.", o.Needs.Option, o.Needs.Value)
	}
	if o.Kind == sessionoption.Threads {
		meaning += " 0 leaves the number to ONNX Runtime."
	}
	if o.ChangesResults {
		meaning += " Outputs may differ in their last digits."
	}
	if !o.Triton {
		meaning += " Only the bundled engine honours it."
	}
	return setting(o.Name, t, meaning, placeOf(o))
}

// placeOf describes the place of a session option in config.pbtxt, and its codes there.
func placeOf(o sessionoption.Option) string {
	if len(o.Entries) > 0 {
		return "session entries `" + strings.Join(o.Entries, "` and `") + "`"
	}
	place := "parameter `" + o.Field() + "`"
	if o.IsLevel {
		place = "`" + o.Field() + "`"
	}
	if len(o.Codes) > 0 {
		var codes []string
		for _, value := range o.Values() {
			codes = append(codes, o.Code(value))
		}
		place += " " + strings.Join(codes, ", ")
	}
	return place
}

// serverKnobs lists the knobs of instances and the batcher.
func serverKnobs() []Field {
	batches := series(whole(0, 0), false)
	batches.Good = []string{"0", "8", "[1, 2, 4]", "{min: 1, max: 32, scale: pow2}"}
	batches.Bad = append(batches.Bad, "[0, 4]")
	delays := series(duration(0, time.Minute), true)
	delays.Name = "series: duration up to `1m`, whole microseconds"
	delays.Good = []string{"0", "100us", "[0, 1ms]", "{min: 0, max: 1ms, step: 500us}"}
	delays.Bad = append(delays.Bad, "10ns", "2m")
	return []Field{
		setting(search.KnobInstanceCount, series(whole(1, 0), false), "Copies of the model that work at the same time. The default configuration may have one group only.", "`instance_group.count`"),
		setting(search.KnobMaxBatchSize, batches, "The largest batch of the batcher, or 0 alone for a model without a batch dimension. Another batch size than the default's drops its preferred sizes.", "`max_batch_size`, above 0 with `dynamic_batching`"),
		setting(search.KnobPreferredBatchSize, Type{Name: "list of whole numbers from 1; or a list of such lists",
			Schema: `{"anyOf": [{"type": "integer", "minimum": 1}, {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "array", "items": {"type": "integer", "minimum": 1}}]}}]}`,
			Good:   []string{"[4, 8]", "[[4], [4, 8]]"}, Bad: []string{"[]", "[0]", "some"}}, "A list of sizes is one value, and a list of lists is several.", "`dynamic_batching.preferred_batch_size`"),
		setting(search.KnobMaxQueueDelay, delays, "The longest time for which a request waits for others to fill the batch.", "`dynamic_batching.max_queue_delay_microseconds`"),
		{Name: search.KnobPadding, Type: Type{Name: "`none`, `longest`, a multiple, or a list of sizes; or a list of these",
			Schema: oneOrMore(`{"anyOf": [{"enum": ["none", "longest"]}, {"type": "integer", "minimum": 2}, {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1}}]}`),
			Good:   []string{"32", "[none, 32, longest, [32, 128, 512]]"}, Bad: []string{"[]", "0", "some", "[[0]]"}}, Without: "`none`",
			Meaning: "How clients pad the requests of a [mix of shapes](../how-to/your-requests.md#padding), so that batches grow. `32` pads to multiples of 32, `[[32, 128, 512]]` to the next of these sizes, `longest` to the largest shape of the mix. It is the client's work: config.pbtxt does not have it."},
	}
}

// otherKnobs lists session entries, providers' options and fields of ModelConfig.
func otherKnobs() []Others {
	any := Type{Name: "a value or a list, nested as in config.pbtxt", Schema: `true`}
	texts := Type{Name: "text; or a list", Schema: oneOrMore(anyText)}
	fields := (&configpb.ModelConfig{}).ProtoReflect().Descriptor().Fields()
	var known []string
	for i := range fields.Len() {
		known = append(known, fields.Get(i).TextName())
	}
	return []Others{
		{Pattern: `^session\..+`, Type: texts},
		{Pattern: `^(` + strings.Join(provider.Names(), "|") + `)\..+`, Type: texts},
		{Pattern: `^(` + strings.Join(known, "|") + `)$`, Type: any},
	}
}
