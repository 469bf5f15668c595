package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"tuner/internal/durable"
	"tuner/onnx"
	"tuner/onnx/inputs"
	"tuner/ortsweep/olive"
	"tuner/search"
	"tuner/spec"
)

// fromFlags is the name that errors give to a specification that was made of flags.
const fromFlags = "command line"

// readSweep reads the file, or makes a specification of the flags, OLive's configuration or OLive's variables. What cannot
// apply of OLive's forms is told on stderr.
func readSweep(con console, o sweepOptions) (spec.Sweep, error) {
	if o.given("budget") && o.budget < time.Second {
		return spec.Sweep{}, usageErrorf("--budget %v: it must be 1s or longer", o.budget)
	}
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
	if err := checkModelFile(o, settings.Model); err != nil {
		return spec.Sweep{}, err
	}
	f, err := newSweepFile(o, settings)
	if err != nil {
		return spec.Sweep{}, err
	}
	text, err := f.text()
	if err != nil {
		return spec.Sweep{}, err
	}
	s, err := spec.ParseSweep(fromFlags, text)
	if err != nil {
		return spec.Sweep{}, withExit(exitUsage, namingFlags(err))
	}
	s.Text, err = f.movable(s.Output)
	return s, err
}

// checkModelFile tells early, and in terms of flags, what is wrong with the model's path.
func checkModelFile(o sweepOptions, model string) error {
	if model == "" {
		return usageErrorf("no model given: use -m model.onnx, or -f ortsweep.yaml")
	}
	if isPyTorch(model) {
		return usageErrorf("cannot sweep %q: it is a PyTorch model; 'tuner convert %s' makes an ONNX file of it", model, model)
	}
	if _, err := os.Stat(model); err != nil {
		hint := ""
		if o.oliveFile != "" {
			hint = "; the paths in " + o.oliveFile + " are relative to its folder"
		}
		return usageErrorf("cannot open the model %q: %v%s", model, durable.Cause(err), hint)
	}
	return nil
}

// namingFlags puts flags in place of fields into the errors of a specification that was made of them: its lines are nowhere to
// be seen.
func namingFlags(err error) error {
	var mistakes spec.Errors
	if !errors.As(err, &mistakes) {
		return err
	}
	for i, m := range mistakes {
		mistakes[i].Line, mistakes[i].Path = 0, flagOf(m.Path)
	}
	return mistakes
}

// flagOf is the flag that stands for a field; the field where none does.
func flagOf(field string) string {
	for _, f := range []struct{ field, flag string }{
		{"output", "--output-folder"}, {"measure", "--measure"}, {"batch", "--batch"}, {"sessions", "--sessions"}, {"search.budget", "--budget"},
		{"accuracy.data", "--data"}, {"load.inputs.shape.", "--shape "}, {"space.", "--knob "}, {"space", "--knob"},
		{"baseline", "--baseline"}, {"candidate", "--candidate"}, {"metrics", "--metric "}, {"limits.", "--limit "}, {"load.concurrency", "--concurrency"},
		{"load.request_rate", "--request-rate"},
	} {
		if rest, found := strings.CutPrefix(field, f.field); found {
			return strings.TrimSpace(f.flag + rest)
		}
	}
	return field
}

// readSweepFile reads an ortsweep.yaml. Of the flags that say what is swept only budget and output folder go together with one.
func readSweepFile(o sweepOptions) (spec.Sweep, error) {
	for _, flag := range []string{"batch", "data", "in-names", "in-shapes", "in-types", "knob", "measure", "model", "olive", "out-names", "sessions", "shape"} {
		if o.given(flag) {
			return spec.Sweep{}, usageErrorf("--%s contradicts -f: the file says it", flag)
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
	if o.given("budget") {
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

// sweepFile is an ortsweep.yaml as the flags make it. A number that a flag gives is written even if it is 0, which is an error.
type sweepFile struct {
	Model    string            `yaml:"model"`
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

// newSweepFile makes the ortsweep.yaml that says the same as flags and OLive's settings: it is read like any other, and written
// beside the results. Flags go before OLive's settings.
func newSweepFile(o sweepOptions, s olive.Settings) (sweepFile, error) {
	f := sweepFile{Model: s.Model, Name: s.Name, Output: cmp.Or(o.folder, s.Output), Measure: o.measure}
	if s.Throughput && f.Measure == "" {
		f.Measure = spec.SweepThroughput
	}
	shapes, batch, err := sweepShapes(o, s)
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

// number is a flag's value where it is given, else OLive's, which is 0 where that says nothing; nil for neither.
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

// movable is the text with absolute paths: `-f` runs it again from the results' folder.
func (f sweepFile) movable(output string) ([]byte, error) {
	f.Output = output
	paths := []*string{&f.Model, &f.Output}
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

// libraryFiles are those among the values of the knob runtime, which have a slash (package spec).
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
	given, err := parseShapes(o.shapes)
	if err != nil {
		return nil, 0, withExit(exitUsage, err)
	}
	maps.Copy(shapes, given)
	return shapes, batch, nil
}

// sweepSpace makes the space of --knob and of OLive's knobs that no flag gives; nil for neither, so that the usual space is
// searched.
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
			return nil, usageErrorf("--knob %q: write KNOB=VALUE,VALUE such as intra_op_threads=1,2", text)
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
