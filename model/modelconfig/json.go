package modelconfig

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// FormatJSON prints c in the form of Triton's answer to a request for a configuration. Proto field
// names are in the schema's order. Default values and empty lists are printed, and unset messages
// are omitted. 64-bit integers are numbers.
func FormatJSON(c *Config) ([]byte, error) {
	// Only strings that are not UTF-8 have no JSON form.
	if _, err := proto.Marshal(c); err != nil {
		return nil, fmt.Errorf("cannot print configuration of %q: %w", c.GetName(), err)
	}
	w := jsonWriter{}
	w.message(c.ProtoReflect())
	return w.out.Bytes(), nil
}

// quotes64 names the messages whose 64-bit integers Triton prints as strings, like protocol
// buffers. It prints all others as numbers.
func quotes64(message protoreflect.FullName) bool {
	switch message {
	case "inference.ModelInstanceGroup.SecondaryDevice",
		"inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape",
		"inference.ModelSequenceBatching.InitialState":
		return true
	}
	return false
}

type jsonWriter struct {
	out bytes.Buffer
}

func (w *jsonWriter) message(m protoreflect.Message) {
	w.out.WriteByte('{')
	fields := m.Descriptor().Fields()
	first := true
	for i := range fields.Len() {
		fd := fields.Get(i)
		if fd.HasPresence() && !m.Has(fd) {
			continue // an unset message or member of a oneof
		}
		if fd.FullName() == "inference.ModelEnsembling.max_inflight_requests" && m.Get(fd).Uint() == 0 {
			continue // a field of newer Tritons: the release that is followed does not print it
		}
		if !first {
			w.out.WriteByte(',')
		}
		first = false
		w.string(string(fd.Name()))
		w.out.WriteByte(':')
		w.field(fd, m.Get(fd))
	}
	w.out.WriteByte('}')
}

func (w *jsonWriter) field(fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch {
	case fd.IsMap():
		w.mapping(fd, v.Map())
	case fd.IsList():
		w.out.WriteByte('[')
		for i := range v.List().Len() {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.single(fd, v.List().Get(i))
		}
		w.out.WriteByte(']')
	default:
		w.single(fd, v)
	}
}

func (w *jsonWriter) mapping(fd protoreflect.FieldDescriptor, m protoreflect.Map) {
	var keys []protoreflect.MapKey
	for k := range m.Range {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int {
		if fd.MapKey().Kind() == protoreflect.Uint64Kind {
			return cmp.Compare(a.Uint(), b.Uint())
		}
		return strings.Compare(a.String(), b.String())
	})
	w.out.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			w.out.WriteByte(',')
		}
		w.string(k.String())
		w.out.WriteByte(':')
		w.single(fd.MapValue(), m.Get(k))
	}
	w.out.WriteByte('}')
}

// single writes one scalar or message.
func (w *jsonWriter) single(fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		w.message(v.Message())
	case protoreflect.EnumKind:
		if ev := fd.Enum().Values().ByNumber(v.Enum()); ev != nil {
			w.string(string(ev.Name()))
		} else {
			w.out.WriteString(strconv.Itoa(int(v.Enum())))
		}
	case protoreflect.StringKind:
		w.string(v.String())
	case protoreflect.Int64Kind, protoreflect.Uint64Kind:
		if quotes64(fd.ContainingMessage().FullName()) {
			w.string(v.String())
		} else {
			w.out.WriteString(v.String())
		}
	case protoreflect.FloatKind:
		w.float(v.Float(), 32)
	case protoreflect.DoubleKind:
		w.float(v.Float(), 64)
	default: // booleans and 32-bit integers
		w.out.WriteString(v.String())
	}
}

func (w *jsonWriter) string(s string) {
	encoder := json.NewEncoder(&w.out)
	encoder.SetEscapeHTML(false)
	// Encode of a string into a buffer cannot fail, and ends with a line break.
	_ = encoder.Encode(s)
	w.out.Truncate(w.out.Len() - 1)
}

// float writes a number with a decimal point. Values without a JSON number are written like in
// protocol buffers.
func (w *jsonWriter) float(f float64, bits int) {
	switch {
	case math.IsNaN(f):
		w.string("NaN")
	case math.IsInf(f, 1):
		w.string("Infinity")
	case math.IsInf(f, -1):
		w.string("-Infinity")
	default:
		s := strconv.FormatFloat(f, 'g', -1, bits)
		if !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
		w.out.WriteString(s)
	}
}
