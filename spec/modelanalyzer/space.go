package modelanalyzer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tuner/model/modelconfig"
	"tuner/ort/provider"
	"tuner/ort/sessionoption"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec/document"
)

// unlimited is a budget that no campaign uses up, since Model Analyzer ends when everything is
// measured.
const unlimited = 1_000_000

// search writes how the space is searched. Configurations that are enumerated by hand are measured
// in their order. The automatic search is tuner's own, unless the file names a mode.
func (r *reader) search(n *native, m model) {
	strategy := plan.Guided
	at, mode := r.mode(m, strategy)
	switch {
	case mode == "quick":
		strategy = plan.Quick
	case mode == "brute", mode == "" && r.isManual(m):
		strategy = plan.Grid
	}
	n.word(at, strategy, "search", "strategy")
	n.word(at, strconv.Itoa(unlimited), "search", "budget", "trials")
	if v, has := r.clientFlags(m)["measurement-interval"]; has && v.isSaid() {
		n.text(v, v.node.Value+"ms", "search", "window")
	}
}

// mode returns the mode of the search; "" if the file names none. sampler is the strategy that stands
// for Optuna's.
func (r *reader) mode(m model, sampler string) (value, string) {
	at, mode := r.text("run_config_search_mode", "")
	switch mode {
	case "":
		at = m.at
	case "brute", "quick":
	case "optuna":
		r.warn(at, "the sampler is tuner's own (%s), which takes the limits into account", sampler)
	default:
		r.fail(at, document.Error{Problem: "is not known", Allowed: "brute, quick, optuna"})
	}
	if v, has := r.said("run_config_search_disable"); has && mode == "quick" {
		r.fail(v, document.Error{Problem: "contradicts run_config_search_mode: quick", Hint: "keep one of the two"})
	}
	return at, mode
}

// isManual reports whether a model's configurations are enumerated by hand. The modes quick and
// optuna choose instances and batch in any case, in addition to the listed values.
func (r *reader) isManual(m model) bool {
	v, has := m.given["model_config_parameters"]
	_, mode := r.text("run_config_search_mode", "")
	_, disabled := r.said("run_config_search_disable")
	return disabled || has && v.isSaid() && mode != "quick" && mode != "optuna"
}

// space writes which configurations are searched.
func (r *reader) space(n *native, m model) {
	if v, has := m.given["model_config_parameters"]; has && v.isSaid() {
		s := spaceWriter{r, n, m}
		s.message(v, (*modelconfig.Config)(nil).ProtoReflect().Descriptor())
	}
	if !r.isManual(m) {
		r.automaticSpace(n, m)
	}
	r.onCPU(n, m)
	if !hasKey(n.root, "space") { // the file lists nothing, or only null
		n.word(m.at, "none", "space")
	}
}

// automaticSpace adds the ranges of instances and batch, unless they are listed.
func (r *reader) automaticSpace(n *native, m model) {
	listed := child(n.root, "space")
	if !hasKey(listed, search.KnobInstanceGroup) {
		r.span(n, m, span{"instance_count", 1, 5, false}, "space", search.KnobInstanceCount)
	}
	if !hasKey(listed, search.KnobMaxBatchSize) {
		r.span(n, m, span{"model_batch_size", 1, 128, true}, "space", search.KnobMaxBatchSize)
	}
}

// onCPU keeps a model off its server's GPUs, unless the file lists instance groups or accelerators,
// which decide themselves.
func (r *reader) onCPU(n *native, m model) {
	_, mode := r.text("triton_launch_mode", "")
	if !r.isOnCPU(m) || r.machine.GPUs == 0 && mode != launchRemote {
		return
	}
	listed := child(n.root, "space")
	hasAccelerators := hasKey(listed, "optimization") && hasKey(child(listed, "optimization"), "execution_accelerators")
	if !hasKey(listed, search.KnobInstanceGroup) && !hasAccelerators {
		n.word(m.at, provider.CPU, "space", search.KnobExecutionProvider)
	}
}

// span is a range of the automatic search: the suffix of its fields' names, and the default ends.
type span struct {
	field     string
	low, high int64
	doubles   bool
}

// span writes a range, with the ends in the file.
func (r *reader) span(n *native, m model, s span, keys ...string) {
	node, path := mapping(m.at), strings.Join(keys, ".")
	n.set(m.at, node, keys...)
	for _, end := range []struct {
		name  string
		usual int64
	}{{"min", s.low}, {"max", s.high}} {
		at, text := m.at, strconv.FormatInt(end.usual, 10)
		if v, has := r.said("run_config_search_" + end.name + "_" + s.field); has {
			at, text = v, v.node.Value
			n.origins[path] = v // mistakes in the whole range are reported at this field
		}
		n.word(at, text, append(slices.Clone(keys), end.name)...)
	}
	if s.doubles {
		n.word(m.at, "pow2", append(slices.Clone(keys), "scale")...)
	}
}

// spaceWriter writes the model_config_parameters of one model. Fields with a knob in tuner become
// that knob's values. All others are swept under their own names, in Model Analyzer's forms.
type spaceWriter struct {
	r *reader
	n *native
	m model
}

// message writes the fields of a message.
func (s spaceWriter) message(v value, md protoreflect.MessageDescriptor, path ...string) {
	if !v.isMapping() {
		s.r.fail(v, document.Error{Problem: "must be a mapping (field: value)"})
		return
	}
	for _, e := range v.entries() {
		f := md.Fields().ByTextName(e.name)
		at := append(slices.Clone(path), e.name)
		switch {
		case e.isNull(): // keep the configuration's own value
		case f == nil || f.Message() == nil || f.IsList() || f.IsMap():
			s.leaf(e.value, f, at)
		default:
			s.part(e.value, f, at)
		}
	}
}

// part writes a field with one message: a mapping, also as the only element of a list.
func (s spaceWriter) part(v value, f protoreflect.FieldDescriptor, path []string) {
	name := strings.Join(path, ".")
	alternatives := v.elements()
	switch {
	case v.isSequence() && len(alternatives) == 1 && alternatives[0].isMapping():
		s.part(alternatives[0], f, path)
	case v.isSequence() && name == "optimization.execution_accelerators":
		s.lowered(v)
		s.n.set(v, s.copy(v, false), s.space(path)...)
	case v.isSequence():
		s.r.fail(v, document.Error{Problem: "lists several mappings", Allowed: "one mapping", Hint: "list the values of its fields instead: all combinations are measured"})
	default:
		if name == "optimization.execution_accelerators" {
			s.lowered(v)
		}
		s.message(v, f.Message(), path...)
		if name == "dynamic_batching" {
			s.batching(v)
		}
	}
}

// batching turns the dynamic batcher on, unless another part of the space certainly does.
func (s spaceWriter) batching(v value) {
	isSure := !s.r.isManual(s.m) // the range of batches does
	look := func(entries []entry, names ...string) {
		for _, e := range entries {
			isNothing := !e.isSaid() || slices.ContainsFunc(e.elements(), func(x value) bool { return !x.isSaid() })
			isSure = isSure || slices.Contains(names, e.name) && !isNothing
		}
	}
	look(v.entries(), "max_queue_delay_microseconds", "preferred_batch_size")
	look(s.m.given["model_config_parameters"].entries(), "max_batch_size")
	isSure = isSure || slices.ContainsFunc(v.entries(), func(e entry) bool { return e.name == "preserve_ordering" })
	if !isSure {
		s.n.word(v, "false", s.space([]string{"dynamic_batching", "preserve_ordering"})...)
	}
}

func (s spaceWriter) space(path []string) []string { return append([]string{"space"}, path...) }

// leaf writes a field with values of its own.
func (s spaceWriter) leaf(v value, f protoreflect.FieldDescriptor, path []string) {
	switch strings.Join(path, ".") {
	case "max_batch_size":
		s.n.set(v, s.copy(v, true), "space", search.KnobMaxBatchSize)
	case "dynamic_batching.preferred_batch_size":
		s.n.set(v, s.copy(v, true), "space", search.KnobPreferredBatchSize)
	case "dynamic_batching.max_queue_delay_microseconds":
		s.n.set(v, each(v, func(e value) *yaml.Node { return scalar(e, e.node.Value+"us", true) }), "space", search.KnobMaxQueueDelay)
	case "optimization.graph.level":
		s.n.set(v, each(v, graphLevel), "space", sessionoption.GraphOptimization)
	case "instance_group":
		s.n.set(v, s.groups(v), "space", "instance_group")
	case "parameters":
		s.parameters(v)
	default:
		isNumber := f != nil && f.Kind() != protoreflect.StringKind && f.Message() == nil
		s.n.set(v, s.copy(v, isNumber), s.space(path)...)
	}
}

// each makes a list of a value's elements.
func each(v value, of func(value) *yaml.Node) *yaml.Node {
	if !v.isSequence() {
		return of(v)
	}
	list := sequence(v)
	for _, e := range v.elements() {
		list.Content = append(list.Content, of(e))
	}
	return list
}

// graphLevel returns the knob's word for a level of Triton's onnxruntime backend.
func graphLevel(v value) *yaml.Node {
	if word, known := sessionoption.Of(sessionoption.GraphOptimization).Decode(v.node.Value); known {
		return scalar(v, word, true)
	}
	return scalar(v, v.node.Value, true)
}

// groups copies instance groups, and adds to each what Triton would choose: its kind and count.
func (s spaceWriter) groups(v value) *yaml.Node {
	list := s.copy(v, false)
	kind := "KIND_GPU"
	if s.r.isOnCPU(s.m) {
		kind = "KIND_CPU"
	}
	var fill func(*yaml.Node)
	fill = func(n *yaml.Node) {
		if n.Kind == yaml.SequenceNode {
			for _, c := range n.Content {
				fill(c)
			}
		}
		if n.Kind != yaml.MappingNode {
			return
		}
		for _, usual := range [][2]string{{"kind", kind}, {"count", "1"}} {
			isThere := false
			for i := 0; i < len(n.Content); i += 2 {
				isThere = isThere || n.Content[i].Value == usual[0]
			}
			if !isThere {
				n.Content = append(n.Content, scalar(v, usual[0], true), scalar(v, usual[1], false))
			}
		}
	}
	fill(list)
	return list
}

// stringValue returns a parameter's value: itself, its string_value, or in a list also those of
// each mapping.
func stringValue(v value) value {
	for _, inner := range v.entries() {
		if inner.name == "string_value" {
			return inner.value
		}
	}
	if !v.isSequence() {
		return v
	}
	list := sequence(v)
	for _, e := range v.elements() {
		parts := []value{e}
		if e.isMapping() {
			parts = stringValue(e).elements()
		}
		for _, part := range parts {
			list.Content = append(list.Content, part.node)
		}
	}
	return value{list, v.path}
}

// parameters writes backend parameters, {name: {string_value: text or list}}. Those of the
// onnxruntime backend become its knobs.
func (s spaceWriter) parameters(v value) {
	if list := v.elements(); len(list) == 1 {
		v = list[0]
	}
	if !v.isMapping() {
		s.r.fail(v, document.Error{Problem: "must be one mapping (name: value)", Hint: "list the values of a parameter instead: all combinations are measured"})
		return
	}
	for _, e := range v.entries() {
		text := stringValue(e.value)
		option, isKnob := sessionoption.OfParameter(e.name)
		if !isKnob {
			s.n.set(text, each(text, func(x value) *yaml.Node { return scalar(x, x.node.Value, true) }), "space", "parameters", e.name)
			continue
		}
		s.n.set(text, each(text, func(x value) *yaml.Node {
			if word, known := option.Decode(x.node.Value); known {
				return scalar(x, word, false)
			}
			return scalar(x, x.node.Value, false)
		}), "space", option.Name)
	}
}

// lowered allows options of accelerators that lower the precision, with a warning.
func (s spaceWriter) lowered(v value) {
	for _, e := range v.elements() {
		of := ""
		for _, f := range e.entries() {
			if f.name == "name" {
				of = f.node.Value
			}
		}
		for _, f := range e.entries() {
			switch {
			case f.name == "parameters":
				s.loweredOptions(of, f.value)
			case f.isSequence() || f.isMapping():
				s.lowered(f.value)
			}
		}
	}
}

func (s spaceWriter) loweredOptions(of string, v value) {
	for _, option := range v.entries() {
		for _, x := range option.elements() {
			if !provider.Of(of).LowersPrecision(option.name, x.node.Value) {
				continue
			}
			s.r.warn(x, "%s computes with fewer bits than the model says; its outputs are not compared with the original's",
				fmt.Sprintf("%s %s", of, x.node.Value))
			if at := child(s.n.root, "accuracy"); len(at.Content) == 0 {
				s.n.word(x, "true", "accuracy", "unchecked_options")
			}
		}
	}
}

// copy copies a value. Numbers may be quoted in Model Analyzer's files.
func (s spaceWriter) copy(v value, isNumber bool) *yaml.Node {
	n := &yaml.Node{Kind: v.node.Kind, Tag: v.node.Tag, Value: v.node.Value, Line: v.node.Line}
	if v.node.Kind != yaml.ScalarNode {
		n.Style, n.Tag = yaml.FlowStyle, ""
	} else if _, ok := v.whole(); ok && isNumber {
		n.Tag, n.Value = "", strings.TrimSpace(v.node.Value)
	}
	for _, c := range v.node.Content {
		n.Content = append(n.Content, s.copy(value{c, v.path}, isNumber))
	}
	return n
}
