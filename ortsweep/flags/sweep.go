package flags

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tuner/internal/exit"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/ortsweep/olive"
	"tuner/search"
	"tuner/spec"
)

// sweepFile is an ortsweep.yaml made from flags. A number from a flag is written even if it is 0,
// so that package spec reports the mistake.
type sweepFile struct {
	Model    string            `yaml:"model"`
	Opened   []string          `yaml:"op_libraries,omitempty"`
	Name     string            `yaml:"name,omitempty"`
	Output   string            `yaml:"output,omitempty"`
	Measure  string            `yaml:"measure,omitempty"`
	Batch    *int              `yaml:"batch,omitempty"`
	Sessions *int              `yaml:"sessions,omitempty"`
	Search   map[string]string `yaml:"search,omitempty"`
	Space    *yaml.Node        `yaml:"space,omitempty"`
	Load     map[string]any    `yaml:"load,omitempty"`
	Accuracy map[string]string `yaml:"accuracy,omitempty"`
}

// newSweepFile makes the ortsweep.yaml from flags and OLive's settings. Flags take precedence.
func newSweepFile(o *Options, s olive.Settings) (sweepFile, error) {
	f := sweepFile{Model: s.Model, Opened: o.libraries, Name: s.Name, Output: cmp.Or(o.folder, s.Output), Measure: o.measure}
	if s.Throughput && f.Measure == "" {
		f.Measure = spec.SweepThroughput
	}
	shapes, batch, err := o.sweepShapes(s)
	if err != nil {
		return sweepFile{}, err
	}
	f.Batch = number(o.given("batch"), o.batch, cmp.Or(s.Batch, batch))
	f.Sessions = number(o.given("sessions"), o.sessions, s.Sessions)
	if o.given("budget") {
		f.Search = map[string]string{"budget": o.budget.String()}
	}
	if data := cmp.Or(o.data, s.Data); data != "" {
		f.Accuracy = map[string]string{"data": data}
	}
	if len(shapes) > 0 {
		f.Load = map[string]any{"inputs": map[string]any{"shape": shapes}}
	}
	f.Space, err = sweepSpace(o.knobs, s.Knobs)
	return f, err
}

// number returns the value of a given flag, or else OLive's value (0 if not set); nil without
// either.
func number(given bool, flag, ofOLive int) *int {
	switch {
	case given:
		return &flag
	case ofOLive != 0:
		return &ofOLive
	}
	return nil
}

func (f sweepFile) text() ([]byte, error) {
	text, err := yaml.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("cannot write the specification of the sweep: %w", err)
	}
	return text, nil
}

// movable returns the text with absolute paths, so that `-f` can run it from the results' folder.
func (f sweepFile) movable(output string) ([]byte, error) {
	f.Output = output
	paths := []*string{&f.Model, &f.Output}
	f.Opened = slices.Clone(f.Opened)
	for i := range f.Opened {
		paths = append(paths, &f.Opened[i])
	}
	data, hasData := f.Accuracy["data"]
	if hasData {
		paths = append(paths, &data)
	}
	paths = append(paths, libraryFiles(f.Space)...)
	for _, path := range paths {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return nil, fmt.Errorf("cannot resolve %q: %w", *path, err)
		}
		*path = absolute
	}
	if hasData {
		f.Accuracy = map[string]string{"data": data}
	}
	return f.text()
}

// libraryFiles returns the library files among the values of the knob runtime: those with a slash
// (package spec).
func libraryFiles(space *yaml.Node) (paths []*string) {
	if space == nil {
		return nil
	}
	for i := 0; i+1 < len(space.Content); i += 2 {
		if space.Content[i].Value != search.KnobRuntime {
			continue
		}
		for _, v := range space.Content[i+1].Content {
			if strings.ContainsRune(v.Value, filepath.Separator) {
				paths = append(paths, &v.Value)
			}
		}
	}
	return paths
}

// sweepShapes collects the shapes of --shape and of OLive's forms, and OLive's batch. It compares
// OLive's shapes with the model.
func (o *Options) sweepShapes(s olive.Settings) (shapes map[string][]int64, batch int, err error) {
	shapes = map[string][]int64{}
	if len(s.Inputs)+len(s.Outputs) > 0 {
		model, err := onnx.Read(s.Model)
		if err != nil {
			return nil, 0, exit.With(exit.Usage, err)
		}
		if err := s.Check(model); err != nil {
			return nil, 0, exit.With(exit.Usage, err)
		}
		shapes = s.Shapes(inputs.Batches(model))
		if inputs.Batches(model) {
			if batch, err = s.BatchSize(); err != nil {
				return nil, 0, exit.With(exit.Usage, err)
			}
		}
	}
	given, err := inputs.ParseShapes(o.shapes)
	if err != nil {
		return nil, 0, exit.With(exit.Usage, err)
	}
	maps.Copy(shapes, given)
	return shapes, batch, nil
}

// sweepSpace makes the space from --knob and OLive's other knobs. It returns nil without any, so
// that the default space is searched.
func sweepSpace(flags []string, knobs []olive.Knob) (*yaml.Node, error) {
	space := &yaml.Node{Kind: yaml.MappingNode}
	add := func(name string, values *yaml.Node) {
		space.Content = append(space.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, values)
	}
	given := map[string]bool{}
	for _, text := range flags {
		name, list, found := strings.Cut(text, "=")
		var values yaml.Node
		if !found || name == "" || yaml.Unmarshal([]byte("["+list+"]"), &values) != nil || len(values.Content) != 1 {
			return nil, exit.Usagef("--knob %q: write KNOB=VALUE,VALUE such as intra_op_threads=1,2", text)
		}
		given[name] = true
		add(name, values.Content[0])
	}
	for _, k := range knobs {
		if given[k.Name] {
			continue
		}
		values := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, v := range k.Values {
			values.Content = append(values.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: v})
		}
		add(k.Name, values)
	}
	if len(space.Content) == 0 {
		return nil, nil
	}
	return space, nil
}
