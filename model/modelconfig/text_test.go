package modelconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"

	"tuner/internal/golden"
	"tuner/model/modelconfig/configpb"
)

// This prints a configuration written in every notation of the text format. The canonical form must
// be a fixed point.
func TestFormat(t *testing.T) {
	t.Parallel()
	loose := mustParse(t, readFile(t, "loose.pbtxt"))
	got, err := Format(loose)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "canonical.pbtxt"), got)
	again, err := Format(mustParse(t, got))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), string(again)); diff != "" {
		t.Errorf("not a fixed point: -first +second:\n%s", diff)
	}
}

// This sets every field of the schema, one oneof member after the other, and converts it to text
// and JSON and back.
func TestEveryFieldSurvives(t *testing.T) {
	t.Parallel()
	for member := range 3 { // no oneof of the schema has more than three members
		want := &Config{}
		fill(want.ProtoReflect(), member, 6)
		text, err := Format(want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, mustParse(t, text), protocmp.Transform()); diff != "" {
			t.Errorf("text: -want +got:\n%s", diff)
		}
		object, err := FormatJSON(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseJSON(object)
		if err != nil {
			t.Fatalf("ParseJSON(%s): %v", object, err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("JSON: -want +got:\n%s", diff)
		}
	}
}

// fill sets every field of m to a non-default value. For each oneof it sets the given member, or
// its last.
func fill(m protoreflect.Message, member, depth int) {
	for i := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(i)
		if oneof := fd.ContainingOneof(); oneof != nil && oneof.Fields().Get(min(member, oneof.Fields().Len()-1)) != fd {
			continue
		}
		element := func(empty protoreflect.Value) protoreflect.Value {
			if fd.IsMap() && fd.MapValue().Message() == nil || !fd.IsMap() && fd.Message() == nil {
				return scalar(fd)
			}
			if depth > 0 {
				fill(empty.Message(), member, depth-1)
			}
			return empty
		}
		switch {
		case fd.IsMap():
			values := m.Mutable(fd).Map()
			values.Set(scalar(fd.MapKey()).MapKey(), element(values.NewValue()))
		case fd.IsList():
			list := m.Mutable(fd).List()
			list.Append(element(list.NewElement()))
			list.Append(element(list.NewElement()))
		default:
			m.Set(fd, element(m.NewField(fd)))
		}
	}
}

func scalar(fd protoreflect.FieldDescriptor) protoreflect.Value {
	if fd.IsMap() {
		fd = fd.MapValue()
	}
	switch fd.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("a \"quoted\" <é>\n")
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(fd.Enum().Values().Get(fd.Enum().Values().Len() - 1).Number())
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(-7)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(1 << 31)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(-1 << 62)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(1 << 63)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(0.1)
	default:
		return protoreflect.ValueOfFloat64(1e-300)
	}
}

// The same configuration is printed many times. prototext alone would vary its spacing between
// builds.
func TestFormatIsStable(t *testing.T) {
	t.Parallel()
	got, err := Format(&Config{Name: "m", SchedulingChoice: &configpb.ModelConfig_DynamicBatching{
		DynamicBatching: &configpb.ModelDynamicBatching{PreferredBatchSize: []int32{4, 8}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := "name: \"m\"\ndynamic_batching {\n  preferred_batch_size: [4, 8]\n}\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Texts that look like their surroundings, and lists that end where the next message begins.
func TestFormatReadsItsOwnLines(t *testing.T) {
	t.Parallel()
	got, err := Format(&Config{
		Name: "a: {", Platform: "}", Input: []*configpb.ModelInput{{Dims: []int64{1, -1}}, {Dims: []int64{2}, Reshape: &configpb.ModelTensorReshape{}}},
		Parameters: map[string]*configpb.ModelParameter{": ]\n": {StringValue: "%"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `name: "a: {"
platform: "}"
input {
  dims: [1, -1]
}
input {
  dims: [2]
  reshape {}
}
parameters {
  key: ": ]\n"
  value {
    string_value: "%"
  }
}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{
			"all misspelt names at once",
			"name: \"m\"\n# c\n  max_batch: 3\ninput [ { nam: \"x\" data_type: TYPE_FP }, { # k\n foo: 3} ]\n",
			`c.pbtxt:3:3: unknown field "max_batch" in ModelConfig; did you mean "max_batch_size"?
c.pbtxt:4:11: unknown field "nam" in ModelInput; did you mean "name"?
c.pbtxt:4:20: unknown value "TYPE_FP" of field "data_type"; did you mean "TYPE_FP16"? (allowed: TYPE_INVALID, TYPE_BOOL, TYPE_UINT8, TYPE_UINT16, TYPE_UINT32, TYPE_UINT64, TYPE_INT8, TYPE_INT16, TYPE_INT32, TYPE_INT64, TYPE_FP16, TYPE_FP32, TYPE_FP64, TYPE_STRING, TYPE_BF16)
c.pbtxt:5:2: unknown field "foo" in ModelInput`,
		},
		{"wrong type", "name: \"m\"\n  max_batch_size: \"3\"", `c.pbtxt:2:19: invalid value for int32 type: "3"`},
		{"scalar twice", "name: \"m\"\nname: \"m\"", `c.pbtxt:2:1: non-repeated field "name" is repeated`},
		{"brace not closed", "input {", "c.pbtxt: unexpected EOF"},
		{"two schedulers", "dynamic_batching {} sequence_batching {}", `c.pbtxt:1:21: error parsing "sequence_batching", oneof inference.ModelConfig.scheduling_choice is already set`},
		{"JSON", `{"name": "m"}`, `c.pbtxt:1:2: unknown field "\"name\"" in ModelConfig; did you mean "name"?`},
		{"in a map", `parameters { key: "a" val { string_value: "1" } }`, `c.pbtxt:1:23: unknown field "val" in ParametersEntry; did you mean "value"?`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("c.pbtxt", []byte(test.text))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A hostile text must not exhaust the stack.
func TestParseHugeNesting(t *testing.T) {
	t.Parallel()
	if _, err := Parse("c.pbtxt", []byte(strings.Repeat("input{", 1<<20))); err == nil {
		t.Error("no error")
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func mustParse(t *testing.T, text []byte) *Config {
	t.Helper()
	c, err := Parse("test.pbtxt", text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
