// Package draft writes the first profile.yaml and analyze.yaml of a model, with comments. It fills in templates
// with the facts of a Starter on model and machine. It also tells which analyze.yaml is that of a
// profile's campaign. It stands above package spec, which reads these files.
package draft

import (
	"bytes"
	"embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"

	"tuner/model/precision/recipe"
	"tuner/ort/sessionoption"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/mixture"
)

// Names of the files that `tuner init` writes.
const (
	ProfileName = "profile.yaml"
	AnalyzeName = "analyze.yaml"
)

//go:embed templates
var templates embed.FS

// Starter has the content of a commented profile.yaml and analyze.yaml for a model. Paths are as in
// the files: relative to their folder.
type Starter struct {
	Model  string // ONNX file or Triton model folder
	Config string // config.pbtxt; "" for a model folder, which has its own
	// OpLibraries are the libraries with operators of the model
	OpLibraries []string
	// EPLibrary is the library with an execution provider; "": none
	EPLibrary string
	Name      string // served name
	Output    string // folder of the campaign
	Cores     int    // of the machine, ≥ 1
	OnGPU     bool   // the default configuration computes on GPUs
	Batching  bool   // the model has a batch dimension
	Shapes    []StarterShape
	// Texts are inputs without a size of their own whose values are example texts
	Texts []StarterShape
	// Values are the values of inputs that are the same in every request, and why, for people
	Values []string
	// Precisions are those that are worth a try for the model. The others that pay on the default's
	// device are named with the reason.
	Precisions recipe.Choice
	Wish       *Wish // the user's requests; nil: examples replace them, marked as such
}

// Wish has the user's requests without a file, each in the form of a profile.
type Wish struct {
	Budget     string      // of the search; "": the default
	Until      string      // relative gain at which the search may end; "": none
	Mode       string      // ModeOnline or ModeOffline; "": neither
	Objective  string      // metric; "": the mode's, or the default
	P99        string      // limit of the p99 latency; "": none
	Accuracy   string      // minimum mean cosine of other precisions; "": the default
	Precisions []string    // nil: only that of the model as given
	Data       string      // rows from which requests are drawn; "": random values
	Mix        mixture.Mix // distribution of a dimension; zero for requests of one shape
}

// StarterShape is an input with symbolic dimensions, with the size of each.
type StarterShape struct {
	Input  string
	Dims   []int64 // without the batch dimension, every one ≥ 1
	Note   string  // one line for people that names the symbolic dimensions
	Reason string  // for people, why tuner chose its sizes; "" if they are the user's
}

// Examples returns the shapes that have an example size, and the inputs with example texts.
func (s Starter) Examples() []StarterShape {
	list := slices.Clone(s.Texts)
	for _, shape := range s.Shapes {
		if shape.Reason != "" {
			list = append(list, shape)
		}
	}
	return list
}

// NewStarter returns the starter for a model. The served name is the model's file name, and the
// campaign is in out/NAME. Without the model's graph no precision but the original is known to be
// worth a try.
func NewStarter(model string) Starter {
	name := spec.NameOf(model)
	return Starter{Model: model, Name: name, Output: filepath.Join("out", name), Cores: 1,
		Precisions: recipe.Choice{Names: []string{recipe.Original}}}
}

// Threads and Instances are the values of the knobs in the written space, chosen for the machine's
// cores.
func (s Starter) Threads() []int { return spec.DefaultThreads(s.Cores) }

// Instances: see Threads.
func (s Starter) Instances() []int { return spec.DefaultInstances(s.Cores) }

// SessionOptions are examples of further knobs: the session options that a stock Triton honours.
func (Starter) SessionOptions() []string {
	var lines []string
	for _, option := range sessionoption.All() {
		values := option.Swept
		if option.Kind == sessionoption.Threads {
			values = []string{"1", "2"}
		}
		if !option.Triton || option.Name == search.KnobIntraOpThreads || len(values) == 0 {
			continue
		}
		line := fmt.Sprintf("%s: [%s]", option.Name, strings.Join(values, ", "))
		if n := option.Needs; n.Option != "" {
			line = fmt.Sprintf("%-42s # counts with %s %s only", line, n.Option, n.Value)
		}
		lines = append(lines, line)
	}
	return lines
}

// Wished returns the wish, or an empty one.
func (s Starter) Wished() Wish {
	if s.Wish == nil {
		return Wish{}
	}
	return *s.Wish
}

// HasMix reports whether requests have several shapes.
func (s Starter) HasMix() bool { return !s.Wished().Mix.IsZero() }

// ProfileName and AnalyzeName are the names of the files, for their own comments.
func (s Starter) ProfileName() string { return ProfileName }

// AnalyzeName: see ProfileName.
func (s Starter) AnalyzeName() string { return AnalyzeName }

// Profile returns the text of the profile.yaml.
func (s Starter) Profile() ([]byte, error) { return s.execute(ProfileName) }

// Analyze returns the text of the analyze.yaml.
func (s Starter) Analyze() ([]byte, error) { return s.execute(AnalyzeName) }

func (s Starter) execute(name string) ([]byte, error) {
	name += ".tmpl"
	functions := template.FuncMap{"quote": quoteYAML, "list": listYAML, "comment": commentYAML}
	t, err := template.New(name).Funcs(functions).ParseFS(templates, "templates/"+name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the template %s: %w", name, err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, s); err != nil {
		return nil, fmt.Errorf("cannot fill in the template %s: %w", name, err)
	}
	return b.Bytes(), nil
}

// quoteYAML writes text as a YAML scalar on one line, quoted only where it must be.
func quoteYAML(text string) (string, error) {
	node := yaml.Node{}
	node.SetString(text)
	if strings.ContainsAny(text, "\n\r,[]{}") {
		node.Style = yaml.DoubleQuotedStyle // line breaks must be escaped; flow indicators are not safe inside {…}
	}
	quoted, err := yaml.Marshal(&node)
	return strings.TrimSpace(string(quoted)), err
}

// listYAML writes numbers as a list on one line.
func listYAML(numbers any) string { return strings.ReplaceAll(fmt.Sprint(numbers), " ", ", ") }

// commentYAML puts a text on one line, for a comment. Names in a model file may have line breaks.
func commentYAML(text string) string { return strings.Join(strings.Fields(text), " ") }
