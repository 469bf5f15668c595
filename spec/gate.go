package spec

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"tuner/measure"
	"tuner/measure/arrivals"
	"tuner/ort/addon"
	"tuner/search"
	"tuner/spec/document"
	"tuner/spec/goals"
	"tuner/spec/knobs"
)

// Gate is a gate.yaml with its defaults filled in: the sides that `tuner gate` compares, and how
// much worse the candidate may be. It is immutable. File names are relative to the working folder.
type Gate struct {
	Path     string // of the YAML file
	Text     []byte // of the YAML file; shared, must not be changed
	Name     string // served name of the model on both sides
	Output   string // folder of the results
	History  string // file to which every gate adds a line
	Baseline GateSide
	// Candidate is never a saved baseline.
	Candidate    GateSide
	Load         measure.Load     // neither concurrency nor rate: it follows from the configuration, or from the trace
	Arrivals     arrivals.Pattern // when the requests of a rate are due
	Inputs       Inputs
	Libraries    addon.Libraries     // that the engines of both sides open beside ONNX Runtime
	Metrics      []GateMetric        // empty without a baseline
	Limits       []search.Constraint // absolute limits of the candidate
	Accuracy     Accuracy            // nil Limit: outputs are not compared
	Budget       time.Duration
	Window       time.Duration
	Inconclusive string // GatePass or GateFail, for an inconclusive verdict; "" for neither
	// Models are several models on one server (package gates), each with the fields of a gate of it alone. Metrics
	// and Limits above are then those of all, with the models' names, and of the server.
	Models []Gate
}

// GateSide is one side of a gate: a model with its configuration on a server, or an earlier
// measurement of it.
type GateSide struct {
	Model   string // ONNX file, or Triton model folder; "" without one
	Config  string // config.pbtxt, for an ONNX file; "" for Triton's auto-completion
	Runtime string // ONNX Runtime: an installed build or a library file; "" for the default
	Engine  string // program file of the tuner whose engine serves; "" for this one
	Saved   string // file of a saved baseline; then all others are empty
}

// IsZero reports whether the side is absent.
func (s GateSide) IsZero() bool { return s == GateSide{} }

// GateMetric is a metric that may be worse than the baseline's by at most a margin.
type GateMetric struct {
	Metric measure.Metric
	Margin float64 // share of the baseline's value, above 0 and below 1
}

// The meanings of an inconclusive verdict.
const (
	GatePass = "pass"
	GateFail = "fail"
)

// The default margins of metrics. A high percentile over a few seconds varies several times as much
// as a throughput.
const (
	usualMargin = 0.02
	tailMargin  = 0.10
	tail        = 0.9 // from this quantile on
)

// DefaultMargin returns the default margin of a metric, as a share.
func DefaultMargin(m measure.Metric) float64 {
	if q, ok := m.Quantile(); ok && q >= tail {
		return tailMargin
	}
	return usualMargin
}

// ParseGate reads a gate.yaml. path is its file name for errors. Relative paths in the file are
// relative to its folder. The error is a document.Errors with every mistake of the
// file.
func ParseGate(path string, text []byte) (Gate, error) {
	d := document.New(path, GateNeedsNoFile)
	root, ok := d.Open(text)
	if !ok || isForeign(root) {
		return Gate{}, d.Err()
	}
	g := ReadGate(path, root, nil)
	if err := d.Err(); err != nil {
		return Gate{}, err
	}
	g.Text = slices.Clone(text)
	return g.Defaulted(), nil
}

// GateNeedsNoFile tells how to do without a gate.yaml.
const GateNeedsNoFile = "`tuner gate --candidate MODEL` needs no file"

// candidateField is the field that each gate of a model has.
const candidateField = "candidate"

// ReadGate reads the named fields of a gate.yaml from v, or without names all. misplaced reports other fields, and
// returns true for those that it knows; nil knows none. Fields are checked against each other if the
// candidate is among them.
func ReadGate(path string, v document.Value, misplaced func(key, v document.Value) bool, names ...string) Gate {
	g := Gate{Path: path, Load: measure.Load{BatchSize: 1}, Budget: 15 * time.Minute, Window: 500 * time.Millisecond}
	scratch := profileDefaults()
	scratch.Path = path
	r := gateReader{profileReader{p: &scratch}, &g}
	fields := slices.DeleteFunc(r.fields(), func(f document.Field) bool { return len(names) > 0 && !slices.Contains(names, f.Name) })
	given := v.Mapping(fields, misplaced)
	if slices.ContainsFunc(fields, func(f document.Field) bool { return f.Name == candidateField }) {
		r.check(v, given)
	}
	g.Name, g.Output, g.Inputs, g.Accuracy, g.Libraries = scratch.Name, scratch.Output, scratch.Inputs, scratch.Accuracy, scratch.Model.Libraries
	return g
}

// Defaulted sets the values that follow from other fields.
func (g Gate) Defaulted() Gate {
	if g.Name == "" {
		g.Name = NameOf(g.Candidate.Model)
	}
	if g.Output == "" {
		g.Output = document.RelativeTo(g.Path, filepath.Join("out", g.Name+"-gate"))
	}
	if g.History == "" {
		g.History = filepath.Join(g.Output, "history.jsonl")
	}
	if len(g.Metrics) == 0 && !g.Baseline.IsZero() {
		first := measure.Throughput
		if g.IsOpen() { // the schedule then sets the throughput
			first = measure.LatencyAvg
		}
		for _, m := range []measure.Metric{first, measure.LatencyP99} {
			g.Metrics = append(g.Metrics, GateMetric{m, DefaultMargin(m)})
		}
	}
	return g
}

// Profile returns the profile that opens the model of a side. name is the side's name in errors.
func (g Gate) Profile(name string, side GateSide) Profile {
	p := profileDefaults()
	p.Path, p.Name, p.Output, p.Inputs, p.Accuracy = Place(g.Path, name, name), g.Name, g.Output, g.Inputs, g.Accuracy
	p.Model = ModelSource{Path: side.Model, Config: side.Config, Libraries: g.Libraries}
	p.Load.BatchSize, p.Load.Arrivals = g.Load.BatchSize, g.Arrivals
	return p.defaulted()
}

// Each lists several models, each as a gate of it alone with what is the server's; or the gate of one.
func (g Gate) Each() []Gate {
	if len(g.Models) == 0 {
		return []Gate{g}
	}
	list := slices.Clone(g.Models)
	for i := range list {
		m := &list[i]
		m.Output, m.History, m.Libraries, m.Budget, m.Window = g.Output, g.History, g.Libraries, g.Budget, g.Window
	}
	return list
}

// IsOpen reports whether a schedule sends the requests, and not the answers.
func (g Gate) IsOpen() bool { return g.Load.RequestRate > 0 || g.Arrivals.Kind == arrivals.TraceKind }

// AllMetrics lists the metrics of the gate, each once.
func (g Gate) AllMetrics() []measure.Metric {
	var list []measure.Metric
	for _, m := range g.Metrics {
		list = append(list, m.Metric)
	}
	for _, c := range g.Limits {
		if !slices.Contains(list, c.Metric) {
			list = append(list, c.Metric)
		}
	}
	return list
}

// gateReader reads the fields of a gate.yaml into g. It reads those with the same meaning as in a
// profile.yaml into a profile.
type gateReader struct {
	profileReader
	g *Gate
}

func (r gateReader) fields() []document.Field {
	g := r.g
	within := func(target *time.Duration, low, high time.Duration) func(document.Value) {
		return func(v document.Value) {
			if d, ok := v.DurationWithin(low, high); ok {
				*target = d
			}
		}
	}
	return []document.Field{
		{Name: addon.FileField, Read: func(v document.Value) { r.p.Model.Libraries.Operators = v.Files(r.p.Path) }},
		{Name: addon.ProviderField, Read: func(v document.Value) { r.file(v, &r.p.Model.Libraries.Provider) }},
		{Name: "name", Read: r.name},
		{Name: "output", Read: func(v document.Value) { r.file(v, &r.p.Output) }},
		{Name: "history", Read: func(v document.Value) { r.file(v, &g.History) }},
		{Name: modelsField, Read: func(v document.Value) {
			v.Fail(document.Error{Problem: "is not supported here: this gate is of one model"}) // package gates reads several
		}},
		{Name: "baseline", Read: func(v document.Value) { r.side(v, &g.Baseline, true) }},
		{Name: candidateField, Read: func(v document.Value) { r.side(v, &g.Candidate, false) }},
		{Name: "load", Read: r.load},
		{Name: "metrics", Read: r.metrics},
		{Name: "limits", Read: r.limits},
		{Name: "accuracy", Read: r.accuracy},
		{Name: "budget", Read: within(&g.Budget, shortestBudget, longestBudget)},
		{Name: "window", Read: within(&g.Window, shortestWindow, longestWindow)},
		{Name: "inconclusive", Read: func(v document.Value) { setWord(v, &g.Inconclusive, []string{GatePass, GateFail}) }},
	}
}

// side reads a model's path, a saved baseline's path, or {model, config, runtime, engine}.
func (r gateReader) side(v document.Value, target *GateSide, canBeSaved bool) {
	if len(v.Node.Content) == 0 {
		name, ok := v.Text()
		switch {
		case !ok:
		case strings.EqualFold(filepath.Ext(name), ".json") && canBeSaved:
			target.Saved = document.RelativeTo(r.p.Path, name)
		case strings.EqualFold(filepath.Ext(name), ".json"):
			v.Fail(document.Error{Problem: "is not a model: a candidate is always measured", Allowed: "an ONNX file or a Triton model folder"})
		default:
			target.Model = document.RelativeTo(r.p.Path, name)
		}
		return
	}
	given := v.Mapping([]document.Field{
		{Name: "model", Read: func(v document.Value) { r.file(v, &target.Model) }},
		{Name: "config", Read: func(v document.Value) { r.file(v, &target.Config) }},
		{Name: "runtime", Read: func(v document.Value) {
			if name, ok := knobs.Build(v, r.p.Path); ok {
				target.Runtime = name
			}
		}},
		{Name: "engine", Read: func(v document.Value) { r.file(v, &target.Engine) }},
	}, nil)
	if _, has := given["model"]; !has && v.Node.Kind == yaml.MappingNode {
		v.Fail(document.Error{Problem: "has no model", Allowed: "{model: FILE, config: FILE, runtime: BUILD, engine: FILE}"})
	}
}

// load reads the one load of a gate.
func (r gateReader) load(v document.Value) {
	l := &r.g.Load
	number := func(most int64, set func(int64)) func(document.Value) {
		return func(v document.Value) {
			if len(v.Node.Content) > 0 {
				v.Fail(document.Error{Problem: "must be one number: a gate has one load", Hint: "write a gate.yaml for each load"})
				return
			}
			if n, ok := v.Whole(1, most); ok {
				set(n)
			}
		}
	}
	given := v.Mapping([]document.Field{
		{Name: "concurrency", Read: number(highestConcurrency, func(n int64) { l.Concurrency = int(n) })},
		{Name: "request_rate", Read: number(highestRate, func(n int64) { l.RequestRate = float64(n) })},
		{Name: "client_batch_size", Read: number(highestConcurrency, func(n int64) { l.BatchSize = int(n) })},
		r.arrivals(&r.g.Arrivals),
		{Name: "inputs", Read: r.inputs},
	}, nil)
	checkOpen(given, r.g.Arrivals)
	checkSizes(given, r.g.Arrivals, r.g.Inputs.Mix)
}

// highestConcurrency limits the requests in flight, and the rows in one request.
const highestConcurrency = 1 << 20

// metrics reads a list of names, or of {name, margin}.
func (r gateReader) metrics(v document.Value) {
	var seen []measure.Metric
	for _, e := range v.List() {
		before := e.Mistakes()
		m := r.metric(e)
		if e.Mistakes() == before {
			seen = goals.AppendMetric(e, seen, m.Metric)
			r.g.Metrics = append(r.g.Metrics, m)
		}
	}
}

// metric reads one metric.
func (r gateReader) metric(v document.Value) GateMetric {
	var m GateMetric
	name := func(v document.Value) {
		if metric, ok := goals.OfGoal(v); ok {
			checkCost(v, metric)
			m.Metric = metric
		}
	}
	if v.Node.Kind != yaml.MappingNode {
		name(v)
		m.Margin = DefaultMargin(m.Metric)
		return m
	}
	given := v.Mapping([]document.Field{
		{Name: "name", Read: name},
		{Name: "margin", Read: func(v document.Value) {
			if share, ok := v.OpenShare("nobody can prove that a candidate is not worse by anything"); ok {
				m.Margin = share
			}
		}},
	}, nil)
	if _, has := given["name"]; !has {
		v.Fail(document.Error{Problem: "has no name", Allowed: "{name: METRIC, margin: SHARE}"})
	}
	if _, has := given["margin"]; !has {
		m.Margin = DefaultMargin(m.Metric)
	}
	return m
}

// checkCost refuses the cost, which no gate can judge.
func checkCost(v document.Value, m measure.Metric) {
	if m == measure.Cost {
		v.Fail(document.Error{Problem: "follows from throughput and a price", Hint: "name throughput"})
	}
}

// limits reads {metric: {min | max}} and the limit of accuracy.
func (r gateReader) limits(v document.Value) {
	r.g.Limits = goals.Constraints(v, r.accuracyLimit)
	for _, c := range r.g.Limits {
		checkCost(v.Child(string(c.Metric)), c.Metric)
	}
}

// accuracy reads the data for the comparison of outputs.
func (r gateReader) accuracy(v document.Value) {
	a := &r.p.Accuracy
	v.Mapping([]document.Field{
		{Name: "data", Read: func(v document.Value) { r.file(v, &a.Data) }},
		{Name: "rows", Read: func(v document.Value) {
			if n, ok := v.Whole(1, 1_000_000); ok {
				a.Rows = int(n)
			}
		}},
		{Name: "command", Read: func(v document.Value) {
			if text, ok := v.Text(); ok {
				a.Command = text
			}
		}},
	}, nil)
}

// check detects missing fields, and fields that contradict each other.
func (r gateReader) check(root document.Value, given map[string]document.Value) {
	if _, has := given[candidateField]; !has {
		root.Require(candidateField, "an ONNX file or a Triton model folder", "add a line candidate: FILE")
	}
	_, hasBaseline := given["baseline"]
	metrics, hasMetrics := given["metrics"]
	if hasMetrics && !hasBaseline {
		metrics.Fail(document.Error{Problem: "cannot be compared without a baseline", Hint: "add a line baseline: FILE, or bound them by limits: {METRIC: {max: …}}"})
	}
	if i := slices.IndexFunc(r.g.Metrics, func(m GateMetric) bool { return m.Metric == measure.Throughput }); i >= 0 && r.g.IsOpen() {
		at := fmt.Sprintf("%g requests/s", r.g.Load.RequestRate)
		if r.g.Load.RequestRate == 0 {
			at = "the rate of a trace"
		}
		metrics.Fail(document.Error{Problem: fmt.Sprintf("cannot compare throughput at %s: the request rate fixes it", at),
			Hint: "name a latency, or write load: {concurrency: N}"})
	}
	r.checkGPUMemory(given)
	r.checkAccuracy(given)
}

// OnSameGPUs is the mistake of a metric that covers all processes, where both sides have one.
func OnSameGPUs() document.Error {
	return document.Error{Problem: "cannot compare the gpu_memory of two engines: both are on the GPUs at the same time",
		Hint: "bound the candidate's in a gate without a baseline, or compare with a saved one"}
}

// checkGPUMemory refuses a metric that covers all processes if both sides have one.
func (r gateReader) checkGPUMemory(given map[string]document.Value) {
	if r.g.Baseline.Model == "" {
		return
	}
	if slices.ContainsFunc(r.g.Metrics, func(m GateMetric) bool { return m.Metric == measure.GPUMemory }) {
		given["metrics"].Fail(OnSameGPUs())
	}
	if slices.ContainsFunc(r.g.Limits, func(c search.Constraint) bool { return c.Metric == measure.GPUMemory }) {
		given["limits"].Fail(OnSameGPUs())
	}
}

// checkAccuracy combines the limit with the user's command, and reports contradictions.
func (r gateReader) checkAccuracy(given map[string]document.Value) {
	a := &r.p.Accuracy
	if a.Limit == nil {
		if section, has := given[goals.AccuracyField]; has && section.Mistakes() == 0 {
			section.Fail(document.Error{Problem: "has no effect without a limit", Hint: "write limits: {accuracy: {metric: cosine, min: 0.99}}, or remove the section"})
		}
		return
	}
	limit := given["limits"].Child(goals.AccuracyField)
	a.Limit.Command = a.Command
	if err := a.Limit.Validate(); err != nil {
		limit.Fail(document.Error{Problem: err.Error()})
	}
	if r.g.Baseline.Model == "" {
		limit.Fail(document.Error{Problem: "needs the baseline's model: the candidate's outputs are compared with its outputs",
			Hint: "write baseline: FILE, an ONNX file or a Triton model folder"})
	}
}
