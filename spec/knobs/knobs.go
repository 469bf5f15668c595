// Package knobs has a candidate's knobs at both ends of the data flow. Read turns the section `space:`
// of a file into knobs with their values, and Apply turns a candidate into the configuration that
// serves it. Base returns the values of the knobs in a configuration. The package knows no other
// field of a file, and it does not fold or choose candidates (package search).
package knobs

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"tuner/internal/words"
	"tuner/model/mix"
	"tuner/model/modelconfig"
	"tuner/model/precision/recipe"
	"tuner/ort/addon"
	"tuner/ort/provider"
	"tuner/ort/sessionoption"
	"tuner/search"
	"tuner/spec/document"
)

// Auto is the value of execution_provider for all providers that create a session for this model on
// this machine.
const Auto = "auto"

// knobReader reads the values of one knob, in the user's order.
type knobReader func(v document.Value) []search.Value

// knobFields returns the fields of `space:` for the knobs with names of their own.
func (r *reader) knobFields() []document.Field {
	knob := func(name string, read knobReader) document.Field {
		return document.Field{Name: name, Read: func(v document.Value) {
			scope, _ := search.KnobScope(name)
			r.addKnob(name, scope, read(v))
		}}
	}
	fields := []document.Field{
		knob(search.KnobExecutionProvider, wordValues(append([]string{Auto}, provider.Names()...)...)),
		knob(search.KnobRuntime, r.runtimeValues),
		knob(search.KnobPrecision, r.precisionValues),
	}
	for _, option := range sessionoption.All() {
		fields = append(fields, knob(option.Name, sessionValues(option)))
	}
	return append(fields,
		knob(search.KnobInstanceCount, wholeValues(1)),
		knob(search.KnobMaxBatchSize, batchValues),
		knob(search.KnobPreferredBatchSize, sizeListValues),
		knob(search.KnobMaxQueueDelay, delayValues),
		knob(search.KnobPadding, paddingValues),
	)
}

// sessionValues reads the values of a session option.
func sessionValues(option sessionoption.Option) knobReader {
	switch option.Kind {
	case sessionoption.Threads:
		return wholeValues(0)
	case sessionoption.Switch:
		return flagValues
	}
	return wordValues(option.Words...)
}

// noSpace is the space of a profile that measures only the default.
const noSpace = "none"

// Space has what a section `space:` names.
type Space struct {
	Knobs      []search.Knob     // in the file's order; empty for `none`, nil without any
	Convert    []string          // precisions to make from the original, in the file's order
	Precisions map[string]string // the user's own ONNX file of each precision
}

// reader reads a section into space.
type reader struct {
	path      string // of the file
	unchecked bool   // options of execution providers may lower the precision
	space     Space
}

// Read reads the section of the file at path. With unchecked, options of execution providers may
// lower the precision.
func Read(v document.Value, path string, unchecked bool) Space {
	if v.Node.Kind == yaml.ScalarNode && v.Node.Value == noSpace {
		return Space{Knobs: []search.Knob{}} // unlike nil, which is tuner's default space
	}
	r := &reader{path: path, unchecked: unchecked}
	v.Mapping(r.knobFields(), r.otherKnob)
	if len(v.Node.Content) == 0 && v.Node.Kind == yaml.MappingNode {
		v.Fail(document.Error{Problem: "is empty", Hint: "name at least one knob, or remove the line to search the default space"})
	}
	return r.space
}

// Names lists the knobs with names of their own.
func Names() []string { return document.Names((&reader{}).knobFields()) }

// addKnob appends a knob. If all its values were wrong, they have been reported already, and it
// does nothing.
func (r *reader) addKnob(name string, scope search.Scope, values []search.Value) {
	if len(values) > 0 {
		r.space.Knobs = append(r.space.Knobs, search.Knob{Name: name, Scope: scope, Values: values})
	}
}

// otherKnob accepts session.* entries, options of execution providers, and the fields of Triton's
// ModelConfig.
func (r *reader) otherKnob(key, v document.Value) bool {
	name := key.Node.Value
	if sessionoption.IsEntry(name) && name != sessionoption.Prefix {
		r.addKnob(name, search.ScopeEngine, textValues(v))
		return true
	}
	if of, option, ok := search.ProviderOption(name); ok {
		r.addKnob(name, search.ScopeEngine, optionValues(of, option, r.unchecked)(v))
		return true
	}
	fields := r.configFields(configDescriptor(), "")
	for _, f := range fields {
		if f.Name == name {
			f.Read(v)
			return true
		}
	}
	known := document.Names(r.knobFields())
	e := document.Error{Problem: "is neither a knob nor a field of Triton's ModelConfig", Allowed: strings.Join(known, ", ") + ", session.*, PROVIDER.OPTION, ModelConfig fields"}
	if near := words.Nearest(name, append(known, document.Names(fields)...)); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	key.Fail(e)
	return true
}

// Find returns the knob with that name, and false if the list has none.
func Find(list []search.Knob, name string) (search.Knob, bool) {
	for _, k := range list {
		if k.Name == name {
			return k, true
		}
	}
	return search.Knob{}, false
}

func wholeValues(low int64) knobReader {
	return func(v document.Value) []search.Value {
		numbers, _ := v.Series(document.WholeScale(low))
		return mapped(numbers, func(n int64) search.Value { return search.IntValue(int(n)) })
	}
}

// batchValues reads max_batch_size: sizes from 1, or only 0 for a model without batching.
func batchValues(v document.Value) []search.Value {
	values := wholeValues(0)(v)
	if len(values) > 1 && slices.Contains(values, search.IntValue(0)) {
		v.Fail(document.Error{Problem: "mixes 0 (the model has no batch dimension) with batch sizes", Allowed: "0 alone, or sizes from 1",
			Hint: "remove the 0; without batching but with a batch dimension is 1"})
		return nil
	}
	return values
}

// paddingValues reads paddings: none, longest, a multiple, or a list of sizes. So [32, 64] is two
// multiples, and [[32, 64]] is one list of sizes.
func paddingValues(v document.Value) []search.Value {
	return listValues(func(v document.Value) (search.Value, bool) {
		switch {
		case v.Node.Kind == yaml.SequenceNode:
			var sizes []int
			for _, e := range v.List() {
				if n, ok := e.Whole(1, math.MaxInt32); ok {
					sizes = document.AppendOnce(e, sizes, int(n))
				}
			}
			slices.Sort(sizes)
			return search.IntsValue(sizes), len(sizes) > 0
		case v.Node.ShortTag() == "!!int":
			n, ok := v.Whole(2, math.MaxInt32)
			return search.IntValue(int(n)), ok
		}
		word, ok := v.Word([]string{mix.None, mix.Longest})
		return search.Value(word), ok
	})(v)
}

func delayValues(v document.Value) []search.Value {
	delays, _ := v.Series(document.MicroScale())
	return mapped(delays, func(n int64) search.Value { return search.DurationValue(time.Duration(n)) })
}

func wordValues(allowed ...string) knobReader {
	return listValues(func(v document.Value) (search.Value, bool) {
		word, ok := v.Word(allowed)
		return search.Value(word), ok
	})
}

func flagValues(v document.Value) []search.Value {
	return listValues(func(v document.Value) (search.Value, bool) {
		b, ok := v.Flag()
		return search.BoolValue(b), ok
	})(v)
}

func textValues(v document.Value) []search.Value {
	return listValues(func(v document.Value) (search.Value, bool) {
		text, ok := v.Text()
		return search.Value(text), ok
	})(v)
}

// runtimeValues reads the names of ONNX Runtime builds.
func (r *reader) runtimeValues(v document.Value) []search.Value {
	return listValues(func(v document.Value) (search.Value, bool) {
		name, ok := Build(v, r.path)
		return search.Value(name), ok
	})(v)
}

// Build reads the name of an ONNX Runtime: an installed build, or a library file. A file has a slash
// and is relative to the folder of the file at path.
func Build(v document.Value, path string) (string, bool) {
	name, ok := v.Text()
	if ok && strings.ContainsRune(name, filepath.Separator) {
		name = document.RelativeTo(path, name)
	}
	return name, ok
}

// listValues makes a reader of one value, or a list without repetition.
func listValues(read func(document.Value) (search.Value, bool)) knobReader {
	return func(v document.Value) []search.Value {
		var values []search.Value
		for _, e := range v.List() {
			if x, ok := read(e); ok {
				values = document.AppendOnce(e, values, x)
			}
		}
		return values
	}
}

// sizeListValues reads preferred_batch_size, whose values are lists: [4, 8] is one value, [[4], [4,
// 8]] are two.
func sizeListValues(v document.Value) []search.Value {
	lists := v.List()
	nested := slices.ContainsFunc(lists, func(e document.Value) bool { return e.Node.Kind == yaml.SequenceNode })
	if !nested {
		lists = []document.Value{v}
	}
	var values []search.Value
	for _, list := range lists {
		if nested && list.Node.Kind != yaml.SequenceNode {
			list.Fail(document.Error{Problem: "mixes sizes with lists of sizes", Allowed: "[4, 8] for one value, [[4], [4, 8]] for several"})
			continue
		}
		var sizes []int
		for _, e := range list.Elements() {
			if n, ok := e.Whole(1, 1<<20); ok {
				sizes = document.AppendOnce(e, sizes, int(n))
			}
		}
		values = document.AppendOnce(list, values, search.IntsValue(sizes))
	}
	return values
}

// optionValues reads the values of an execution provider's option as texts. With unchecked, they
// may lower the precision.
func optionValues(of, option string, unchecked bool) knobReader {
	return listValues(func(v document.Value) (search.Value, bool) {
		text, ok := v.Text()
		if !ok {
			return "", false
		}
		if e := optionMistake(of, option, text, unchecked); e != (document.Error{}) {
			v.Fail(e)
			return "", false
		}
		return search.Value(text), true
	})
}

// optionMistake returns the mistake in an execution provider's option, and zero without one.
// Providers are tried, and outputs compared with the original's, without options. unchecked means
// that the user accepts this.
func optionMistake(of, option, text string, unchecked bool) document.Error {
	row := provider.Of(of)
	err := modelconfig.CheckProviderOption(of, option, text)
	switch {
	case err != nil:
		return document.Error{Problem: err.Error()}
	case !unchecked && row.LowersPrecision(option, text):
		return document.Error{Problem: "computes with fewer bits than the model says, and would not be compared with the original",
			Hint: fmt.Sprintf("remove the value; the knob %s has what is compared: %s", search.KnobPrecision, strings.Join(recipe.Made(), ", "))}
	case option == row.Device.Option && text != row.Device.Usual:
		return document.Error{Problem: "computes on another device than the one on which the provider is tried and its outputs are compared", Allowed: row.Device.Usual,
			Hint: "remove the value"}
	}
	return document.Error{}
}

// precisionValues reads names of precisions that tuner makes, or a map from names to the user's own
// ONNX files.
func (r *reader) precisionValues(v document.Value) []search.Value {
	if v.Node.Kind == yaml.MappingNode {
		return r.precisionFiles(v)
	}
	known := recipe.Names()
	values := listValues(func(v document.Value) (search.Value, bool) {
		name, ok := v.Text()
		if ok && !slices.Contains(known, name) {
			v.Fail(document.Error{Problem: "is not a precision that tuner makes", Allowed: strings.Join(known, ", "),
				Hint: fmt.Sprintf("name your own file: precision: {%s: MODEL.onnx, %s: FILE.onnx}", recipe.Original, name)})
			return "", false
		}
		return search.Value(name), ok
	})(v)
	for _, name := range values {
		if name != recipe.Original {
			r.space.Convert = append(r.space.Convert, string(name))
		}
	}
	return values
}

func (r *reader) precisionFiles(v document.Value) []search.Value {
	files := map[string]string{}
	var values []search.Value
	v.Mapping(nil, func(key, v document.Value) bool {
		name := key.Node.Value
		if modelconfig.ServableName(name) != name {
			key.Fail(document.Error{Problem: "has a precision's name with other characters than letters, digits and _ . -"})
			return true
		}
		if file, ok := v.Text(); ok {
			files[name] = document.RelativeTo(r.path, file)
			values = append(values, search.Value(name))
		}
		return true
	})
	if len(v.Node.Content) == 0 {
		v.Fail(document.Error{Problem: "is empty", Allowed: "names with their ONNX files"})
	}
	r.space.Precisions = files
	return values
}

// CheckProviders reports execution providers in a section that a stock Triton does not support. list
// has the section's knobs.
func CheckProviders(space document.Value, list []search.Knob) {
	knob, _ := Find(list, search.KnobExecutionProvider)
	stock := provider.OfTriton()
	for _, v := range knob.Values {
		if v != Auto && !slices.Contains(stock, string(v)) {
			space.Child(search.KnobExecutionProvider).Fail(document.Error{
				Problem: fmt.Sprintf("%s is not an execution provider of a stock Triton", v),
				Allowed: strings.Join(stock, ", ") + ", " + Auto, Hint: "write deploy_target: tuner to open all"})
		}
	}
}

// CheckPlugIn reports the provider of a library in a section if the file names no such library. list
// has the section's knobs.
func CheckPlugIn(space document.Value, list []search.Knob, hasLibrary bool) {
	knob, _ := Find(list, search.KnobExecutionProvider)
	for _, v := range knob.Values {
		if provider.Of(string(v)).Apart && !hasLibrary {
			space.Child(search.KnobExecutionProvider).Fail(document.Error{
				Problem: fmt.Sprintf("%s is the execution provider of a library, and the file names none", v),
				Hint:    "write " + addon.ProviderField + ": LIBRARY in a profile of one model"})
		}
	}
}

// mapped applies f to each element.
func mapped[A, B any](list []A, f func(A) B) []B {
	result := make([]B, len(list))
	for i, x := range list {
		result[i] = f(x)
	}
	return result
}
