package knobs

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tuner/model/modelconfig"
	"tuner/ort/sessionoption"
	"tuner/search"
	"tuner/spec/document"
)

// A field of Triton's ModelConfig without a knob can be swept too. Its knob has the field's path as
// its name ("dynamic_batching.preserve_ordering"), and values in protobuf's text form.

func configDescriptor() protoreflect.MessageDescriptor {
	return (*modelconfig.Config)(nil).ProtoReflect().Descriptor()
}

// Fields of ModelConfig: the map from names to texts, and the field of the execution providers.
const (
	parametersField   = "parameters"
	acceleratorsField = "optimization.execution_accelerators"
)

// takenBy returns the knob for a ModelConfig field, or the reason why it cannot be swept; "" if it
// can.
func takenBy(path string) string {
	if key, found := strings.CutPrefix(path, parametersField+"."); found {
		if sessionoption.IsEntry(key) && key != sessionoption.Prefix {
			return "use the knob " + key
		}
		if option, known := sessionoption.OfParameter(key); known {
			return "use the knob " + option.Name
		}
	}
	switch path {
	case "dynamic_batching.max_queue_delay_microseconds":
		return "use the knob " + search.KnobMaxQueueDelay
	case "dynamic_batching.preferred_batch_size":
		return "use the knob " + search.KnobPreferredBatchSize
	case "optimization.graph":
		return "use the knob " + sessionoption.GraphOptimization
	case "name", "platform", "backend", "runtime", "default_model_filename", "cc_model_filenames", "version_policy", "input", "output",
		"ensemble_scheduling":
		return "what is served does not change during a search"
	}
	return ""
}

// ignoredByEngine reports whether a field of ModelConfig has no effect in the bundled engine.
func ignoredByEngine(path string) bool {
	return slices.ContainsFunc([]string{"response_cache", "metric_tags", "model_metrics", "optimization.priority", "optimization.cuda",
		"optimization.input_pinned_memory", "optimization.output_pinned_memory", "optimization.gather_kernel_buffer_threshold",
		"optimization.eager_batching",
	}, func(field string) bool { return path == field || strings.HasPrefix(path, field+".") })
}

// configFields returns the readers of a ModelConfig message's fields. prefix is the message's path.
func (r *reader) configFields(m protoreflect.MessageDescriptor, prefix string) []document.Field {
	fields := make([]document.Field, m.Fields().Len())
	for i := range fields {
		f := m.Fields().Get(i)
		fields[i] = document.Field{Name: f.TextName(), Read: func(v document.Value) { r.configField(f, document.Join(prefix, f.TextName()), v) }}
	}
	return fields
}

// configField reads the values of one ModelConfig field, or of those below it.
func (r *reader) configField(f protoreflect.FieldDescriptor, path string, v document.Value) {
	hint := takenBy(path)
	switch {
	case hint != "":
		v.Fail(document.Error{Problem: "cannot be swept as a field of ModelConfig", Hint: hint})
	case path == parametersField:
		r.configParameters(v)
	case f.IsMap() || f.IsList():
		if values := compositeValues(f, v); r.checkComposite(path, v, values) {
			r.addKnob(path, search.ScopePool, values)
		}
	case path == acceleratorsField && v.Node.Kind == yaml.SequenceNode: // no knob stands for a part of it
		if values := messageValues(f, v); r.checkComposite(path, v, values) {
			r.addKnob(path, search.ScopePool, values)
		}
	case f.Message() != nil:
		v.Mapping(r.configFields(f.Message(), path), nil)
	default:
		r.addKnob(path, search.ScopePool, fieldValues(f, v))
	}
}

// configParameters reads {name: value or list of values}.
func (r *reader) configParameters(v document.Value) {
	v.Mapping(nil, func(key, v document.Value) bool {
		path := document.Join(parametersField, key.Node.Value)
		if hint := takenBy(path); hint != "" {
			key.Fail(document.Error{Problem: "cannot be swept as a parameter", Hint: hint})
			return true
		}
		r.addKnob(path, search.ScopePool, textValues(v))
		return true
	})
}

// fieldValues reads one value or a list for a scalar field.
func fieldValues(f protoreflect.FieldDescriptor, v document.Value) []search.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return flagValues(v)
	case protoreflect.EnumKind:
		var allowed []string
		for i := range f.Enum().Values().Len() {
			allowed = append(allowed, string(f.Enum().Values().Get(i).Name()))
		}
		return wordValues(allowed...)(v)
	case protoreflect.StringKind:
		return textValues(v)
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return listValues(func(v document.Value) (search.Value, bool) {
			x, ok := v.Number("a number above 0")
			return search.Value(strconv.FormatFloat(x, 'g', -1, 64)), ok
		})(v)
	}
	low, high := wholeLimits(f.Kind())
	return listValues(func(v document.Value) (search.Value, bool) {
		n, ok := v.Whole(low, high)
		return search.Value(strconv.FormatInt(n, 10)), ok
	})(v)
}

// wholeLimits returns the range of an integer kind within int64.
func wholeLimits(k protoreflect.Kind) (low, high int64) {
	switch k {
	case protoreflect.Int32Kind:
		return math.MinInt32, math.MaxInt32
	case protoreflect.Uint32Kind:
		return 0, math.MaxUint32
	case protoreflect.Uint64Kind:
		return 0, math.MaxInt64
	}
	return math.MinInt64, math.MaxInt64
}

// setConfigField sets the field at a dotted path of c.
func setConfigField(c *modelconfig.Config, path string, v search.Value) error {
	names := strings.Split(path, ".")
	text, err := fieldText(configDescriptor(), names, string(v))
	if err != nil {
		return err
	}
	parsed, err := modelconfig.Parse(path, []byte(text))
	if err != nil {
		return err
	}
	from, to := parsed.ProtoReflect(), c.ProtoReflect()
	for i, name := range names {
		f := to.Descriptor().Fields().ByTextName(name)
		if one := f.ContainingOneof(); one != nil {
			if set := to.WhichOneof(one); set != nil && set != f {
				return fmt.Errorf("the model's configuration has %q, which excludes %q", set.TextName(), f.TextName())
			}
		}
		switch {
		case isMessage(f) && i+1 < len(names):
			from, to = from.Get(f).Message(), to.Mutable(f).Message()
		case from.Has(f):
			to.Set(f, from.Get(f))
		default: // an empty list, or a scalar's zero
			to.Clear(f)
		}
	}
	return nil
}

// isMessage reports whether a field holds one message with fields of its own.
func isMessage(f protoreflect.FieldDescriptor) bool {
	return f.Message() != nil && !f.IsList() && !f.IsMap()
}

// fieldText returns a configuration in text form with only one field: a scalar, a list, a map, or a
// whole message.
func fieldText(m protoreflect.MessageDescriptor, names []string, v string) (string, error) {
	f := m.Fields().ByTextName(names[0])
	isWhole := len(names) == 1 && strings.HasPrefix(v, "{")
	switch {
	case f == nil || isMessage(f) == (len(names) == 1) && !isWhole:
		return "", fmt.Errorf("no scalar, list or map %q in %s", names[0], m.Name())
	case isMessage(f) && !isWhole:
		inner, err := fieldText(f.Message(), names[1:], v)
		return fmt.Sprintf("%s { %s }", names[0], inner), err
	case f.Kind() == protoreflect.StringKind && !f.IsList():
		return fmt.Sprintf("%s: %q", names[0], v), nil
	}
	return fmt.Sprintf("%s: %s", names[0], v), nil
}
