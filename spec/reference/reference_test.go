package reference_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"tuner/internal/golden"
	"tuner/report/formats"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/document"
	"tuner/spec/gates"
	"tuner/spec/reference"
)

// kind is a kind of file, with its reader and its required lines.
type kind struct {
	file    reference.File
	minimum string
	read    func(text string) (any, error)
}

// kinds lists the kinds. Readers return their result without the text.
func kinds() []kind {
	words := formats.All().Words()
	return []kind{
		{reference.Profile(), "model: model.onnx", func(text string) (any, error) {
			p, err := spec.ParseProfile("profile.yaml", []byte(text))
			p.Text = nil
			return p, err
		}},
		{reference.Analyze(words), "input: out/minilm", func(text string) (any, error) {
			a, err := spec.ParseAnalyze("analyze.yaml", []byte(text), words)
			return a, err
		}},
		{reference.Gate(), "candidate: model.onnx", func(text string) (any, error) {
			g, err := gates.Parse("gate.yaml", []byte(text))
			g.Text = nil
			return g, err
		}},
		{reference.Sweep(), "model: model.onnx", func(text string) (any, error) {
			s, err := spec.ParseSweep("ortsweep.yaml", []byte(text))
			s.Text = nil
			return s, err
		}},
	}
}

// The committed pages and schemas are generated from the tables.
func TestPagesAreGenerated(t *testing.T) {
	t.Parallel()
	docs := filepath.Join("..", "..", "docs", "reference")
	for _, k := range kinds() {
		schema, err := k.file.Schema()
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, filepath.Join(docs, k.file.SchemaName()), schema)
		golden.Check(t, filepath.Join(docs, k.file.PageName()), k.file.Page())
	}
	golden.Check(t, filepath.Join(docs, reference.MetricsPageName), reference.MetricsPage())
}

// document returns a file with a value at a path, and everything that the value requires.
func (k kind) document(path []string, f needy, value string) string {
	lines := []string{}
	given := func(name string) bool {
		return name == path[0] || strings.Contains("\n"+f.With, "\n"+name+":") || k.isReplaced(name, path[0], f.With)
	}
	for _, line := range strings.Split(k.minimum, "\n") {
		if name, _, _ := strings.Cut(line, ":"); !given(name) {
			lines = append(lines, line)
		}
	}
	for _, line := range strings.Split(f.With, "\n") {
		if name, _, _ := strings.Cut(line, ":"); line != "" && name != path[0] {
			lines = append(lines, line)
		}
	}
	text := fmt.Sprintf("%s: %s", path[len(path)-1], value)
	if f.Beside != "" {
		text = f.Beside + ", " + text
	}
	for i := len(path) - 2; i >= 0; i-- {
		text = fmt.Sprintf("%s: {%s}", path[i], text)
		if i < len(f.around) && f.around[i] != "" {
			text = f.around[i] + ", " + text
		}
	}
	return strings.Join(append(lines, text), "\n") + "\n"
}

// isReplaced reports whether a required line is replaced by a field, or by its requirements.
func (k kind) isReplaced(name, field, with string) bool {
	for _, f := range k.file.Fields {
		if f.Name == name && f.Instead != "" {
			return field == f.Instead || strings.Contains("\n"+with, "\n"+f.Instead+":")
		}
	}
	return false
}

// needy is a field with the requirements of its sections, from the outermost on.
type needy struct {
	reference.Field
	around []string
}

// inherited gives every field the requirements of its sections, by path.
func inherited(fields []reference.Field) map[string]needy {
	all := map[string]needy{}
	reference.Each(fields, func(path []string, f reference.Field) {
		n := needy{Field: f}
		for i := 1; i < len(path); i++ {
			above := all[strings.Join(path[:i], ".")]
			n.With = cmp.Or(n.With, above.With)
			n.around = append(n.around, above.Beside)
		}
		all[strings.Join(path, ".")] = n
	})
	return all
}

// A section has exactly the names that the reader allows. The reader lists them in its error for an
// unknown name.
func TestNamesAreTheReaders(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		check := func(path []string, f needy, fields []reference.Field) {
			_, err := k.read(k.document(append(path, "zz_nobody"), f, "1"))
			var allowed []string
			for _, e := range mistakes(t, err) {
				if strings.HasSuffix(e.Path, "zz_nobody") {
					allowed = strings.Split(e.Allowed, ", ")
				}
			}
			isOther := func(name string) bool {
				scope, isKnob := search.KnobScope(name)
				return isKnob && !k.hasKnob(scope) || strings.ContainsAny(name, ".* ")
			}
			allowed = slices.Sorted(slices.Values(slices.DeleteFunc(allowed, isOther)))
			var names []string
			for _, f := range fields {
				names = append(names, f.Name)
			}
			slices.Sort(names)
			if diff := gocmp.Diff(allowed, names); diff != "" {
				t.Errorf("%s %s (-reader +table):\n%s", k.file.Name, strings.Join(path, "."), diff)
			}
		}
		check(nil, needy{}, k.file.Fields)
		for name, f := range inherited(k.file.Fields) {
			if len(f.Fields) > 0 && !f.IsNamed {
				path := strings.Split(name, ".")
				f.around, f.Beside = append(f.around, f.Beside), ""
				check(path, f, f.Fields)
			}
		}
	}
}

// hasKnob reports whether a file of this kind may have a knob of a scope: a sweep has no batcher.
func (k kind) hasKnob(scope search.Scope) bool {
	return k.file.Name != "ortsweep.yaml" || scope == search.ScopeArtifact || scope == search.ScopeEngine
}

// mistakes returns the mistakes in a file.
func mistakes(t *testing.T, err error) document.Errors {
	t.Helper()
	var es document.Errors
	if err != nil && !errors.As(err, &es) {
		t.Fatal(err)
	}
	return es
}

// A file that sets a default reads the same as one that omits it.
func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		for name, f := range inherited(k.file.Fields) {
			if f.Default == "" {
				continue
			}
			path := strings.Split(name, ".")
			with, err := k.read(k.document(path, f, f.Default))
			if err != nil {
				t.Errorf("%s: the default of %s: %v", k.file.Name, name, err)
				continue
			}
			without, err := k.read(k.without(path, f))
			if err != nil {
				t.Errorf("%s without %s: %v", k.file.Name, name, err)
			}
			if diff := gocmp.Diff(without, with, exported()); diff != "" {
				t.Errorf("%s: %s is not the default of %s (-without +with):\n%s", k.file.Name, f.Default, name, diff)
			}
		}
	}
}

// without returns a document with all requirements of a field, but without the field.
func (k kind) without(path []string, f needy) string {
	if f.Beside != "" {
		neighbour, value, _ := strings.Cut(f.Beside, ": ")
		f.Beside = ""
		return k.document(append(path[:len(path)-1:len(path)-1], neighbour), f, value)
	}
	lines := []string{f.With}
	for _, line := range strings.Split(k.minimum, "\n") {
		if name, _, _ := strings.Cut(line, ":"); !strings.Contains("\n"+f.With, "\n"+name+":") && !k.isReplaced(name, path[0], f.With) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// exported makes comparisons include unexported fields.
func exported() gocmp.Option { return gocmp.Exporter(func(reflect.Type) bool { return true }) }

// Every good value is read and satisfies the schema. Every bad one is refused by both.
func TestReaderAndSchemaAgree(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		schema := compiled(t, k.file)
		for name, f := range inherited(k.file.Fields) {
			path := strings.Split(name, ".")
			if f.Type.Name != "" && len(f.Type.Good) == 0 {
				t.Errorf("%s: %s has no good value", k.file.Name, name)
			}
			for _, good := range f.Type.Good {
				text := k.document(path, f, good)
				if _, err := k.read(text); err != nil {
					t.Errorf("the reader refuses a good value:\n%s%v", text, err)
				}
				if err := validate(t, schema, text); err != nil {
					t.Errorf("the schema of %s refuses a good value:\n%s%v", k.file.Name, text, err)
				}
			}
			for _, bad := range f.Type.Bad {
				text := k.document(path, f, bad)
				if _, err := k.read(text); err == nil {
					t.Errorf("the reader of %s accepts a bad value:\n%s", k.file.Name, text)
				}
				if err := validate(t, schema, text); err == nil && !isFiner(bad) {
					t.Errorf("the schema of %s accepts a bad value:\n%s", k.file.Name, text)
				}
			}
		}
		if err := validate(t, schema, k.minimum+"\nzz_nobody: 1\n"); err == nil {
			t.Errorf("the schema of %s accepts an unknown field", k.file.Name)
		}
	}
}

// isFiner reports values that only a reader can refuse. Patterns cannot compare durations, or
// shares with 100 %. Schemas do not know addresses or the options of a server.
func isFiner(value string) bool {
	switch value {
	case "10ns", "2m", "[0, 4]", `"me@host"`, `"host:0"`, "[--http-port=1]":
		return true
	}
	return false
}

// Every example in configs satisfies its schema.
func TestExamplesSatisfyTheSchema(t *testing.T) {
	t.Parallel()
	found := 0
	for _, k := range kinds() {
		schema := compiled(t, k.file)
		files, err := filepath.Glob(filepath.Join("..", "..", "configs", "*"+k.file.Name))
		if err != nil {
			t.Fatal(err)
		}
		found += len(files)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate(t, schema, string(text)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if found == 0 {
		t.Error("found no examples")
	}
}

func compiled(t *testing.T, f reference.File) *jsonschema.Schema {
	t.Helper()
	text, err := f.Schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("schema.json")
	if err != nil {
		t.Fatalf("the schema of %s: %v", f.Name, err)
	}
	return schema
}

// validate checks YAML with a schema, like an editor.
func validate(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	asJSON, err := json.Marshal(named(value))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(doc)
}

// named turns the keys of mappings into text, as JSON has them: YAML also has numbers.
func named(value any) any {
	switch v := value.(type) {
	case map[any]any:
		out := map[string]any{}
		for key, each := range v {
			out[fmt.Sprint(key)] = named(each)
		}
		return out
	case map[string]any:
		for key, each := range v {
			v[key] = named(each)
		}
	case []any:
		for i, each := range v {
			v[i] = named(each)
		}
	}
	return value
}
