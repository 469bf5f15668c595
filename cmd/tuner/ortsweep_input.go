package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"tuner/internal/durable"
	"tuner/onnx"
	"tuner/onnx/inputs"
	"tuner/ortsweep/olive"
	"tuner/spec"
)

// fromFlags is the name that errors give to a specification that was made of flags.
const fromFlags = "command line"

// readSweep reads the file, or makes a specification of the flags, OLive's configuration or OLive's variables. What cannot
// apply of OLive's forms is told on stderr.
func readSweep(con console, o sweepOptions) (spec.Sweep, error) {
	if o.file != "" {
		return readSweepFile(o)
	}
	settings, err := readOlive(o)
	if err != nil {
		return spec.Sweep{}, withExit(exitUsage, err)
	}
	for _, note := range settings.Notes {
		fmt.Fprintf(con.err, "OLive's %s\n", note)
	}
	if settings.Model == "" {
		return spec.Sweep{}, usageErrorf("no model given: use -m model.onnx, or -f ortsweep.yaml")
	}
	if ext := strings.ToLower(filepath.Ext(settings.Model)); ext == ".pt" || ext == ".pth" {
		return spec.Sweep{}, usageErrorf("cannot sweep %q: it is a PyTorch model; 'tuner convert %s' makes an ONNX file of it", settings.Model, settings.Model)
	}
	text, err := sweepText(o, settings)
	if err != nil {
		return spec.Sweep{}, err
	}
	s, err := spec.ParseSweep(fromFlags, text)
	return s, withExit(exitUsage, err)
}

// readSweepFile reads an ortsweep.yaml. Of the flags only budget and output folder go together with one.
func readSweepFile(o sweepOptions) (spec.Sweep, error) {
	given := map[string]bool{"--model": o.model != "", "--measure": o.measure != "", "--batch": o.batch != 0, "--sessions": o.sessions != 0,
		"--shape": len(o.shapes) > 0, "--knob": len(o.knobs) > 0, "--data": o.data != "", "--olive": o.oliveFile != "",
		"--in-names and the like": !o.tensors.IsZero()}
	for _, flag := range slices.Sorted(maps.Keys(given)) {
		if given[flag] {
			return spec.Sweep{}, usageErrorf("%s contradicts -f: the file says it", flag)
		}
	}
	text, err := os.ReadFile(o.file)
	if err != nil {
		return spec.Sweep{}, usageErrorf("cannot read %q: %v", o.file, durable.Cause(err))
	}
	s, err := spec.ParseSweep(filepath.Clean(o.file), text)
	if err != nil {
		return spec.Sweep{}, withExit(exitUsage, err)
	}
	if o.budget > 0 {
		s.Search.Budget.Time = o.budget
	}
	if o.folder != "" {
		s.Output = o.folder
	}
	return s, nil
}

// readOlive collects what OLive's forms say: its configuration, else its flags, else its variables where no model is given.
func readOlive(o sweepOptions) (olive.Settings, error) {
	if o.oliveFile != "" {
		if o.model != "" || !o.tensors.IsZero() {
			return olive.Settings{}, usageErrorf("--olive contradicts -m and --in-names: the configuration says them")
		}
		text, err := os.ReadFile(o.oliveFile)
		if err != nil {
			return olive.Settings{}, usageErrorf("cannot read %q: %v", o.oliveFile, durable.Cause(err))
		}
		return olive.ParseConfig(o.oliveFile, text)
	}
	if o.model == "" && o.tensors.IsZero() {
		settings, _, err := olive.Variables(os.LookupEnv)
		return settings, err
	}
	in, out, err := o.tensors.Parse()
	return olive.Settings{Model: o.model, Inputs: in, Outputs: out}, err
}

// sweepFile is an ortsweep.yaml as the flags make it.
type sweepFile struct {
	Model    string            `yaml:"model"`
	Name     string            `yaml:"name,omitempty"`
	Output   string            `yaml:"output,omitempty"`
	Measure  string            `yaml:"measure,omitempty"`
	Batch    int               `yaml:"batch,omitempty"`
	Sessions int               `yaml:"sessions,omitempty"`
	Search   map[string]string `yaml:"search,omitempty"`
	Space    *yaml.Node        `yaml:"space,omitempty"`
	Load     map[string]any    `yaml:"load,omitempty"`
	Accuracy map[string]string `yaml:"accuracy,omitempty"`
}

// sweepText is the ortsweep.yaml that says the same as flags and OLive's settings: it is read like any other, and written beside
// the results.
func sweepText(o sweepOptions, s olive.Settings) ([]byte, error) {
	f := sweepFile{Model: s.Model, Name: s.Name, Output: s.Output, Measure: o.measure, Batch: cmp.Or(o.batch, s.Batch), Sessions: cmp.Or(o.sessions, s.Sessions)}
	if o.folder != "" {
		f.Output = o.folder
	}
	if s.Throughput && o.measure == "" {
		f.Measure = spec.SweepThroughput
	}
	if o.budget > 0 {
		f.Search = map[string]string{"budget": o.budget.String()}
	}
	if data := cmp.Or(o.data, s.Data); data != "" {
		f.Accuracy = map[string]string{"data": data}
	}
	shapes, batch, err := sweepShapes(o, s)
	if err != nil {
		return nil, err
	}
	f.Batch = cmp.Or(f.Batch, batch)
	if len(shapes) > 0 {
		f.Load = map[string]any{"inputs": map[string]any{"shape": shapes}}
	}
	if f.Space, err = sweepSpace(o.knobs, s.Knobs); err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("cannot write the specification of the sweep: %w", err)
	}
	return text, nil
}

// sweepShapes collects the shapes of --shape and of OLive's forms, which are compared with the model, and the batch that the
// latter give.
func sweepShapes(o sweepOptions, s olive.Settings) (shapes map[string][]int64, batch int, err error) {
	shapes = map[string][]int64{}
	if len(s.Inputs)+len(s.Outputs) > 0 {
		model, err := onnx.Read(s.Model)
		if err != nil {
			return nil, 0, withExit(exitUsage, err)
		}
		if err := s.Check(model); err != nil {
			return nil, 0, withExit(exitUsage, err)
		}
		shapes = s.Shapes(inputs.Batches(model))
		if inputs.Batches(model) {
			if batch, err = s.BatchSize(); err != nil {
				return nil, 0, withExit(exitUsage, err)
			}
		}
	}
	for _, text := range o.shapes {
		name, dims, found := cutLast(text, ":")
		var shape []int64
		if !found || yaml.Unmarshal([]byte("["+dims+"]"), &shape) != nil {
			return nil, 0, usageErrorf("--shape %q: write NAME:SIZES, without the batch dimension, such as input_ids:32 or image:3,224,224", text)
		}
		shapes[name] = shape
	}
	return shapes, batch, nil
}

// cutLast cuts at the last separator: names of inputs may contain one.
func cutLast(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i > 0 {
		return text[:i], text[i+len(separator):], true
	}
	return text, "", false
}

// sweepSpace makes the space of --knob and of OLive's knobs; nil for neither, so that the usual space is searched.
func sweepSpace(flags []string, knobs []olive.Knob) (*yaml.Node, error) {
	space := &yaml.Node{Kind: yaml.MappingNode}
	add := func(name string, values *yaml.Node) {
		space.Content = append(space.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, values)
	}
	for _, k := range knobs {
		values := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, v := range k.Values {
			values.Content = append(values.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: v})
		}
		add(k.Name, values)
	}
	for _, text := range flags {
		name, list, found := strings.Cut(text, "=")
		var values yaml.Node
		if !found || name == "" || yaml.Unmarshal([]byte("["+list+"]"), &values) != nil || len(values.Content) != 1 {
			return nil, usageErrorf("--knob %q: write KNOB=VALUE,VALUE such as intra_op_threads=1,2", text)
		}
		add(name, values.Content[0])
	}
	if len(space.Content) == 0 {
		return nil, nil
	}
	return space, nil
}
