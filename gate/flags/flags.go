// Package flags has the options of `tuner gate`, and makes the same specification from them as from
// a gate.yaml.
//
// Flags for the comparison become the text of a gate.yaml, so that package spec checks them like a
// file. The package reads the user's gate.yaml, and measures nothing.
package flags

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"tuner/gate/output"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/terminal"
	"tuner/model/onnx/inputs"
	"tuner/ort/addon"
	"tuner/spec"
	"tuner/spec/document"
	"tuner/spec/gates"
)

// Options are the values of the flags.
type Options struct {
	SaveBaseline      string // file; "": the candidate's figures are not saved
	AllowOtherMachine bool
	Annotations       string // CI system of the annotations; "": none
	Quiet             bool
	Output            string // on stdout: "text", "markdown" or "json"
	ORTLibrary        string

	File                    string // gate.yaml; "": the flags say all
	baseline, candidate     string
	metrics, limits, shapes []string
	libraries               addon.Libraries
	concurrency, rate       int
	budget                  time.Duration
	inconclusive            string
	folder                  string

	given func(flag string) bool
}

// Add defines all flags.
func (o *Options) Add(f *pflag.FlagSet) {
	o.given = f.Changed
	f.StringVarP(&o.File, "file", "f", "", "`gate.yaml` (docs/reference/gate.md)")
	f.StringVar(&o.baseline, "baseline", "", "ONNX file or Triton model folder, or a saved baseline (.json)")
	f.StringVar(&o.candidate, "candidate", "", "ONNX file or Triton model folder")
	f.StringArrayVar(&o.metrics, "metric", nil, "METRIC[=MARGIN] that must not be worse, such as throughput=2%; may be repeated")
	f.StringArrayVar(&o.limits, "limit", nil, "METRIC<=BOUND or METRIC>=BOUND, such as latency_p99<=30ms; may be repeated")
	f.IntVar(&o.concurrency, "concurrency", 0, "requests in flight (default 2 × largest batch × instances)")
	f.IntVar(&o.rate, "request-rate", 0, "requests per second, in place of a concurrency")
	f.StringArrayVar(&o.shapes, "shape", nil, "NAME:SIZES of an input without the batch dimension; may be repeated")
	addon.AddFlags(f, &o.libraries)
	f.DurationVar(&o.budget, "budget", 0, "longest `time` to measure (default 15m)")
	f.StringVar(&o.inconclusive, "inconclusive", "", "count an inconclusive verdict as pass or fail (default exit code 4)")
	f.StringVar(&o.SaveBaseline, "save-baseline", "", "save the candidate's figures to this `file`, unless it fails")
	f.BoolVar(&o.AllowOtherMachine, "allow-other-machine", false, "compare with a baseline that was saved on another machine")
	f.StringVarP(&o.folder, "output-folder", "o", "", "`folder` of the results (default out/NAME-gate)")
	f.StringVar(&o.Annotations, "annotations", "", "print lines on stderr for a CI system: github or gitlab")
	f.BoolVarP(&o.Quiet, "quiet", "q", false, "print no progress")
	terminal.AddFormat(f, &o.Output, "`format` on stdout: text (the table), markdown or json")
	f.StringVar(&o.ORTLibrary, "ort-library", "", "ONNX Runtime library, or flavour[@version] of an installed one, for sides that name none")
}

// Read checks the flags. It reads the file, or makes the specification from the flags.
func (o *Options) Read() (spec.Gate, error) {
	if err := o.check(); err != nil {
		return spec.Gate{}, err
	}
	path, text := spec.FromFlags, []byte(nil)
	var err error
	if o.File != "" {
		for _, flag := range []string{"baseline", "candidate", "metric", "limit", "concurrency", "request-rate", "shape", addon.FileFlag, addon.ProviderFlag} {
			if o.given(flag) {
				return spec.Gate{}, exit.Usagef("--%s contradicts -f: the file has this field", flag)
			}
		}
		path = filepath.Clean(o.File)
		if text, err = os.ReadFile(o.File); err != nil {
			return spec.Gate{}, exit.Usagef("cannot read %q: %v", o.File, durable.Cause(err))
		}
	} else if text, err = o.text(); err != nil {
		return spec.Gate{}, err
	}
	g, err := gates.Parse(path, text)
	if err != nil {
		if o.File == "" {
			err = document.NamingFlags(err, append(o.metricFlags(), fieldFlags()...))
		}
		return spec.Gate{}, exit.With(exit.Usage, err)
	}
	if o.given("budget") {
		g.Budget = o.budget
	}
	if o.inconclusive != "" {
		g.Inconclusive = o.inconclusive
	}
	if o.folder != "" {
		if g.History == filepath.Join(g.Output, filepath.Base(g.History)) {
			g.History = filepath.Join(o.folder, filepath.Base(g.History))
		}
		g.Output = o.folder
	}
	return g, nil
}

// check finds invalid words in flags.
func (o *Options) check() error {
	for _, f := range []struct {
		flag, value string
		allowed     []string
	}{
		{"format", o.Output, []string{"text", "markdown", "json"}},
		{"annotations", o.Annotations, []string{"", output.GitHub, output.GitLab}},
		{"inconclusive", o.inconclusive, []string{"", spec.GatePass, spec.GateFail}},
	} {
		if !slices.Contains(f.allowed, f.value) {
			return exit.Usagef("--%s %q: allowed are %s", f.flag, f.value, strings.TrimPrefix(strings.Join(f.allowed, ", "), ", "))
		}
	}
	if o.given("budget") && o.budget < time.Second {
		return exit.Usagef("--budget %v: it must be 1s or longer", o.budget)
	}
	return nil
}

// fieldFlags lists the flags that set fields of a gate.yaml.
func fieldFlags() []document.FieldFlag {
	return []document.FieldFlag{
		{Field: "output", Flag: "--output-folder"},
		{Field: "baseline", Flag: "--baseline"},
		{Field: "candidate", Flag: "--candidate"},
		{Field: "metrics", Flag: "--metric "},
		{Field: "limits.", Flag: "--limit "},
		{Field: "load.concurrency", Flag: "--concurrency"},
		{Field: "load.request_rate", Flag: "--request-rate"},
		{Field: "load.inputs.shape.", Flag: "--shape "},
		{Field: addon.FileField, Flag: "--" + addon.FileFlag},
		{Field: addon.ProviderField, Flag: "--" + addon.ProviderFlag},
	}
}

// metricFlags maps the entries of metrics to the flags that made them.
func (o *Options) metricFlags() []document.FieldFlag {
	var list []document.FieldFlag
	for i, text := range o.metrics {
		flag := fmt.Sprintf("--metric %q", text)
		for _, field := range []string{".margin", ".name", ""} {
			list = append(list, document.FieldFlag{Field: fmt.Sprintf("metrics[%d]%s", i, field), Flag: flag})
		}
	}
	return list
}

// limitText is the form of --limit.
var limitText = regexp.MustCompile(`^\s*([A-Za-z0-9_.]+)\s*(<=|>=)\s*(.+?)\s*$`)

// text returns the gate.yaml that is equal to the flags.
func (o *Options) text() ([]byte, error) {
	if o.candidate == "" {
		return nil, exit.Usagef("no candidate given: use --candidate MODEL, or -f gate.yaml")
	}
	file := map[string]any{"candidate": o.candidate}
	if o.baseline != "" {
		file["baseline"] = o.baseline
	}
	var metrics []any
	for _, text := range o.metrics {
		name, margin, hasMargin := strings.Cut(text, "=")
		if !hasMargin {
			metrics = append(metrics, name)
			continue
		}
		metrics = append(metrics, map[string]string{"name": name, "margin": margin})
	}
	if len(metrics) > 0 {
		file["metrics"] = metrics
	}
	limits, err := o.limitFields()
	if err != nil {
		return nil, err
	}
	if len(limits) > 0 {
		file["limits"] = limits
	}
	load, err := o.loadSection()
	if err != nil {
		return nil, err
	}
	if len(load) > 0 {
		file["load"] = load
	}
	if len(o.libraries.Operators) > 0 {
		file[addon.FileField] = o.libraries.Operators
	}
	if o.libraries.Provider != "" {
		file[addon.ProviderField] = o.libraries.Provider
	}
	return marshal(file)
}

// limitFields returns the section of limits: by metric, its min and max.
func (o *Options) limitFields() (map[string]map[string]string, error) {
	limits := map[string]map[string]string{}
	for _, text := range o.limits {
		m := limitText.FindStringSubmatch(text)
		if m == nil {
			return nil, exit.Usagef("--limit %q: write METRIC<=BOUND or METRIC>=BOUND, such as latency_p99<=30ms", text)
		}
		if limits[m[1]] == nil {
			limits[m[1]] = map[string]string{}
		}
		side := map[string]string{"<=": "max", ">=": "min"}[m[2]]
		if other, given := limits[m[1]][side]; given {
			return nil, exit.Usagef("--limit %q contradicts --limit '%s%s%s': keep one of the two", text, m[1], m[2], other)
		}
		limits[m[1]][side] = m[3]
	}
	return limits, nil
}

// loadSection returns the section of the load.
func (o *Options) loadSection() (map[string]any, error) {
	load := map[string]any{}
	if o.given("concurrency") {
		load["concurrency"] = o.concurrency
	}
	if o.given("request-rate") {
		load["request_rate"] = o.rate
	}
	shapes, err := inputs.ParseShapes(o.shapes)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	if len(shapes) > 0 {
		load["inputs"] = map[string]any{"shape": shapes}
	}
	return load, nil
}

// marshal writes a gate.yaml. Numbers have no quotes, as a user writes them.
func marshal(file map[string]any) ([]byte, error) {
	var node yaml.Node
	if err := node.Encode(file); err != nil {
		return nil, fmt.Errorf("cannot write the gate's file: %w", err)
	}
	unquote(&node)
	text, err := yaml.Marshal(&node)
	if err != nil {
		return nil, fmt.Errorf("cannot write the gate's file: %w", err)
	}
	return text, nil
}

// unquote removes the quotes of all values, so that "200" becomes a number.
func unquote(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Style == yaml.DoubleQuotedStyle {
		n.Style, n.Tag = 0, ""
	}
	for _, c := range n.Content {
		unquote(c)
	}
}
