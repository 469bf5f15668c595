package knobs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/ort/provider"
	"tuner/ort/sessionoption"
	"tuner/search"
	"tuner/spec/document"
)

// Repeated fields and maps of ModelConfig are swept as in Triton Model Analyzer's manual mode. A
// list is one value, and a list of lists several. A mapping is one value, and a list of mappings
// several. In a message below them, each scalar may be a list too; all combinations are then
// values.
//
// The values are in protobuf's text form with the fields in the schema's order, so that equal
// values have equal texts.

// compositeValues reads the values of a repeated field or a map.
func compositeValues(f protoreflect.FieldDescriptor, v document.Value) []search.Value {
	var values []search.Value
	for _, text := range alternatives(f, v) {
		values = document.AppendOnce(v, values, search.Value(text))
	}
	return values
}

// alternatives returns the possible texts of a field. It returns none after a mistake, which it
// reports.
func alternatives(f protoreflect.FieldDescriptor, v document.Value) []string {
	switch {
	case f.IsMap():
		var texts []string
		for _, m := range v.List() {
			texts = append(texts, mapTexts(f, m)...)
		}
		return texts
	case f.IsList():
		var texts []string
		for _, l := range listsOf(v) {
			texts = append(texts, listTexts(f, l)...)
		}
		return texts
	}
	return singleTexts(f, v)
}

// listsOf returns the possible lists of a repeated field: the value, or its elements if all of them
// are lists.
func listsOf(v document.Value) []document.Value {
	elements := v.Elements()
	isList := func(e document.Value) bool { return e.Node.Kind == yaml.SequenceNode }
	switch {
	case !slices.ContainsFunc(elements, isList):
		return []document.Value{v}
	case slices.ContainsFunc(elements, func(e document.Value) bool { return !isList(e) }):
		v.Fail(document.Error{Problem: "mixes elements with lists of elements", Allowed: "[…] for one value, [[…], […]] for several"})
		return nil
	}
	return elements
}

// listTexts returns the texts of one list, whose elements may have several each.
func listTexts(f protoreflect.FieldDescriptor, v document.Value) []string {
	var parts [][]string
	for _, e := range v.Elements() {
		parts = append(parts, singleTexts(f, e))
	}
	return joined(v, "[", parts, "]")
}

// singleTexts returns the texts of one element of a field.
func singleTexts(f protoreflect.FieldDescriptor, v document.Value) []string {
	if f.Message() != nil {
		return messageTexts(f.Message(), v)
	}
	return mapped(fieldValues(f, v), func(x search.Value) string {
		if f.Kind() == protoreflect.StringKind {
			return strconv.Quote(string(x))
		}
		return string(x)
	})
}

// messageTexts returns the texts of one message, whose fields may have several each.
func messageTexts(m protoreflect.MessageDescriptor, v document.Value) []string {
	read := map[protoreflect.FieldNumber][]string{}
	fields := make([]document.Field, m.Fields().Len())
	for i := range fields {
		f := m.Fields().Get(i)
		fields[i] = document.Field{Name: f.TextName(), Read: func(v document.Value) { read[f.Number()] = prefixed(f.TextName()+":", alternatives(f, v)) }}
	}
	given := v.Mapping(fields, nil)
	if len(read) != len(given) || v.Node.Kind != yaml.MappingNode {
		return nil // an unknown field or one without a value was reported
	}
	var parts [][]string
	for i := range fields {
		if texts, has := read[m.Fields().Get(i).Number()]; has {
			parts = append(parts, texts)
		}
	}
	return joined(v, "{", parts, "}")
}

// mapTexts returns the texts of one map, whose values may have several each.
func mapTexts(f protoreflect.FieldDescriptor, v document.Value) []string {
	read := map[string][]string{}
	v.Mapping(nil, func(key, v document.Value) bool {
		keys := singleTexts(f.MapKey(), key)
		if len(keys) == 1 {
			read[keys[0]] = mapped(alternatives(f.MapValue(), v), func(text string) string { return fmt.Sprintf("{key:%s,value:%s}", keys[0], text) })
		}
		return true
	})
	if v.Node.Kind != yaml.MappingNode || 2*len(read) != len(v.Node.Content) {
		return nil
	}
	var parts [][]string
	for _, key := range slices.Sorted(maps.Keys(read)) {
		parts = append(parts, read[key])
	}
	return joined(v, "[", parts, "]")
}

func prefixed(prefix string, texts []string) []string {
	return mapped(texts, func(text string) string { return prefix + text })
}

// joined returns all combinations of one text of each part, between brackets. The last part changes
// fastest.
func joined(v document.Value, begin string, parts [][]string, end string) []string {
	combinations := []string{""}
	for i, texts := range parts {
		if len(combinations)*len(texts) > document.LongestSeries {
			v.Fail(document.Error{Problem: fmt.Sprintf("has more than %d combinations", document.LongestSeries), Hint: "list fewer values"})
			return nil
		}
		var longer []string
		for _, c := range combinations {
			for _, text := range texts {
				if i > 0 {
					text = "," + text
				}
				longer = append(longer, c+text)
			}
		}
		combinations = longer
	}
	return mapped(combinations, func(c string) string { return begin + c + end })
}

// messageValues reads the values of a field with one message: a mapping each, or null for a message
// without fields.
func messageValues(f protoreflect.FieldDescriptor, v document.Value) []search.Value {
	var values []search.Value
	for _, e := range v.List() {
		texts := []string{"{}"}
		if !e.IsNull() {
			texts = messageTexts(f.Message(), e)
		}
		for _, text := range texts {
			values = document.AppendOnce(e, values, search.Value(text))
		}
	}
	return values
}

// checkComposite reports values that are valid but would not be served as written.
func (r *reader) checkComposite(path string, v document.Value, values []search.Value) bool {
	for _, x := range values {
		var c modelconfig.Config
		err := setConfigField(&c, path, x)
		if err == nil && path == search.KnobInstanceGroup {
			err = checkGroups(&c)
		}
		if err == nil {
			err = checkAccelerators(&c, r.unchecked)
		}
		if err != nil {
			v.Fail(document.Error{Problem: fmt.Sprintf("cannot be %s: %v", x, err)})
			return false
		}
	}
	return true
}

// checkGroups requires values in instance groups that Triton would otherwise choose on the machine,
// since the number of instances must be known.
func checkGroups(c *modelconfig.Config) error {
	for i, g := range c.GetInstanceGroup() {
		isKnown := g.GetKind() == configpb.ModelInstanceGroup_KIND_CPU || g.GetKind() == configpb.ModelInstanceGroup_KIND_GPU
		if !isKnown || g.GetCount() < 1 {
			return fmt.Errorf("group %d needs a kind, KIND_CPU or KIND_GPU, and a count from 1", i)
		}
	}
	if len(c.GetInstanceGroup()) == 0 {
		return errors.New("it has no group; write [{kind: KIND_CPU, count: 1}]")
	}
	return nil
}

// GroupInstances returns the number of instances in a value of instance_group. gpus is the number
// of GPUs of groups without a list. It returns 0 for an invalid value.
func GroupInstances(v search.Value, gpus int) int {
	var c modelconfig.Config
	if err := setConfigField(&c, search.KnobInstanceGroup, v); err != nil {
		return 0
	}
	return modelconfig.Instances(&c, gpus)
}

// checkAccelerators applies the rules of the knob execution_provider and of providers' options to
// accelerators.
func checkAccelerators(c *modelconfig.Config, unchecked bool) error {
	list, err := accelerators(c)
	if err != nil {
		return err
	}
	for _, a := range list {
		if known := provider.Names(); !slices.Contains(known, a.Name) {
			return fmt.Errorf("%q is not an execution provider; allowed: %s", a.Name, strings.Join(known, ", "))
		}
		for _, option := range slices.Sorted(maps.Keys(a.Parameters)) {
			if e := optionMistake(a.Name, option, a.Parameters[option], unchecked); e != (document.Error{}) {
				return fmt.Errorf("option %s of %s: %s", option, a.Name, e.Problem)
			}
		}
	}
	return nil
}

func accelerators(c *modelconfig.Config) ([]modelconfig.Accelerator, error) {
	o, err := modelconfig.ORTOptions(c)
	return slices.Concat(o.GPUAccelerators, o.CPUAccelerators), err
}

// foreignAccelerator returns a value of a field that a stock Triton does not have; "" if it has
// all.
func foreignAccelerator(k search.Knob) string {
	for _, v := range k.Values {
		var c modelconfig.Config
		if err := setConfigField(&c, k.Name, v); err != nil {
			continue // already reported
		}
		list, _ := accelerators(&c)
		for _, a := range list {
			if !slices.Contains(provider.OfTriton(), a.Name) {
				return a.Name
			}
		}
	}
	return ""
}

// isAccelerators reports whether a field of ModelConfig is that of the execution providers, or a
// part of it.
func isAccelerators(path string) bool {
	return path == acceleratorsField || strings.HasPrefix(path, acceleratorsField+".")
}

// ownersOf lists the named knobs that set the same ModelConfig field or session entry.
func ownersOf(path string, knobs []search.Knob) []string {
	var list []string
	for _, k := range knobs {
		_, _, isOption := search.ProviderOption(k.Name)
		isProvider := k.Name == search.KnobExecutionProvider
		switch {
		case path == search.KnobInstanceGroup && (isProvider || k.Name == search.KnobInstanceCount),
			isAccelerators(path) && (isProvider || isOption),
			slices.Contains(sessionoption.Of(k.Name).Entries, path):
			list = append(list, k.Name)
		}
	}
	return list
}

// knobAt returns the place of a knob in a space: under its name, or nested as in config.pbtxt.
func knobAt(space document.Value, name string) document.Value {
	at := space.Child(name)
	if at.Node != space.Node {
		return at
	}
	for part := range strings.SplitSeq(name, ".") {
		at = at.Child(part)
	}
	return at
}

// checkOwners reports a ModelConfig field or session entry if a knob of the space sets it too.
func checkOwners(at document.Value, path string, knobs []search.Knob) {
	owners := ownersOf(path, knobs)
	if len(owners) == 0 || at.IsRecorded() {
		return
	}
	other := "the field of ModelConfig"
	if _, isKnob := search.KnobScope(path); isKnob {
		other = "the session entry"
	}
	at.Fail(document.Error{Problem: "is set by " + strings.Join(owners, " and ") + ", too", Hint: "keep the knob, or " + other})
}

// CheckFields reports ModelConfig fields and session entries in a section that a knob of it sets
// too. list has the section's knobs. It also reports fields without an effect in the bundled engine,
// if that serves (isBundled), and accelerators that a stock Triton does not have, if the
// configuration is for one (isForTriton).
func CheckFields(space document.Value, list []search.Knob, isBundled, isForTriton bool) {
	for _, k := range list {
		at := knobAt(space, k.Name)
		checkOwners(at, k.Name, list)
		if isBundled && ignoredByEngine(k.Name) && !at.IsRecorded() {
			at.Fail(document.Error{Problem: "has no effect: the bundled engine ignores it",
				Hint: "remove it, or measure a Triton: runner: {mode: local, server: tritonserver}"})
		}
		if !isAccelerators(k.Name) || !isForTriton {
			continue
		}
		if name := foreignAccelerator(k); name != "" {
			at.Fail(document.Error{Problem: fmt.Sprintf("%s is not an execution provider of a stock Triton", name),
				Allowed: strings.Join(provider.OfTriton(), ", "), Hint: "write deploy_target: tuner to open all"})
		}
	}
}
