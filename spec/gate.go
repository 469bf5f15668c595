package spec

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"tuner/measure"
	"tuner/search"
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
	Load         measure.Load // neither concurrency nor rate: it follows from the configuration
	Inputs       Inputs
	Metrics      []GateMetric        // empty without a baseline
	Limits       []search.Constraint // absolute limits of the candidate
	Accuracy     Accuracy            // nil Limit: outputs are not compared
	Budget       time.Duration
	Window       time.Duration
	Inconclusive string // GatePass or GateFail, for an inconclusive verdict; "" for neither
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
// relative to its folder. The error is an Errors with every mistake of the file.
func ParseGate(path string, text []byte) (Gate, error) {
	d := &document{file: path}
	g := Gate{Path: path, Text: slices.Clone(text), Load: measure.Load{BatchSize: 1}, Budget: 15 * time.Minute, Window: 500 * time.Millisecond}
	root, ok := d.open(text)
	if !ok || root.isForeign() {
		return Gate{}, d.err()
	}
	scratch := profileDefaults()
	scratch.Path = path
	r := gateReader{profileReader{&scratch}, &g}
	r.check(root, root.mapping(r.fields(), nil))
	if err := d.err(); err != nil {
		return Gate{}, err
	}
	g.Name, g.Output, g.Inputs, g.Accuracy = scratch.Name, scratch.Output, scratch.Inputs, scratch.Accuracy
	return g.defaulted(), nil
}

// defaulted sets the values that follow from other fields.
func (g Gate) defaulted() Gate {
	if g.Name == "" {
		g.Name = nameOf(g.Candidate.Model)
	}
	if g.Output == "" {
		g.Output = relativeTo(g.Path, filepath.Join("out", g.Name+"-gate"))
	}
	if g.History == "" {
		g.History = filepath.Join(g.Output, "history.jsonl")
	}
	if len(g.Metrics) == 0 && !g.Baseline.IsZero() {
		first := measure.Throughput
		if g.Load.RequestRate > 0 { // the schedule then sets the throughput
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
	p.Path, p.Name, p.Output, p.Inputs, p.Accuracy = g.Path+": "+name, g.Name, g.Output, g.Inputs, g.Accuracy
	p.Model = ModelSource{Path: side.Model, Config: side.Config}
	p.Load.BatchSize = g.Load.BatchSize
	return p.defaulted()
}

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

func (r gateReader) fields() []field {
	g := r.g
	within := func(target *time.Duration, low, high time.Duration) func(value) {
		return func(v value) {
			if d, ok := v.durationWithin(low, high); ok {
				*target = d
			}
		}
	}
	return []field{
		{"name", r.name},
		{"output", func(v value) { r.file(v, &r.p.Output) }},
		{"history", func(v value) { r.file(v, &g.History) }},
		{"baseline", func(v value) { r.side(v, &g.Baseline, true) }},
		{"candidate", func(v value) { r.side(v, &g.Candidate, false) }},
		{"load", r.load},
		{"metrics", r.metrics},
		{"limits", r.limits},
		{"accuracy", r.accuracy},
		{"budget", within(&g.Budget, shortestBudget, longestBudget)},
		{"window", within(&g.Window, shortestWindow, longestWindow)},
		{"inconclusive", func(v value) { setWord(v, &g.Inconclusive, []string{GatePass, GateFail}) }},
	}
}

// side reads a model's path, a saved baseline's path, or {model, config, runtime, engine}.
func (r gateReader) side(v value, target *GateSide, canBeSaved bool) {
	if len(v.node.Content) == 0 {
		name, ok := v.text()
		switch {
		case !ok:
		case strings.EqualFold(filepath.Ext(name), ".json") && canBeSaved:
			target.Saved = relativeTo(r.p.Path, name)
		case strings.EqualFold(filepath.Ext(name), ".json"):
			v.fail(Error{Problem: "is not a model: a candidate is always measured", Allowed: "an ONNX file or a Triton model folder"})
		default:
			target.Model = relativeTo(r.p.Path, name)
		}
		return
	}
	given := v.mapping([]field{
		{"model", func(v value) { r.file(v, &target.Model) }},
		{"config", func(v value) { r.file(v, &target.Config) }},
		{"runtime", func(v value) {
			if name, ok := r.build(v); ok {
				target.Runtime = name
			}
		}},
		{"engine", func(v value) { r.file(v, &target.Engine) }},
	}, nil)
	if _, has := given["model"]; !has && v.node.Kind == yaml.MappingNode {
		v.fail(Error{Problem: "has no model", Allowed: "{model: FILE, config: FILE, runtime: BUILD, engine: FILE}"})
	}
}

// load reads the one load of a gate.
func (r gateReader) load(v value) {
	l := &r.g.Load
	number := func(most int64, set func(int64)) func(value) {
		return func(v value) {
			if len(v.node.Content) > 0 {
				v.fail(Error{Problem: "must be one number: a gate has one load", Hint: "write a gate.yaml for each load"})
				return
			}
			if n, ok := v.whole(1, most); ok {
				set(n)
			}
		}
	}
	given := v.mapping([]field{
		{"concurrency", number(highestConcurrency, func(n int64) { l.Concurrency = int(n) })},
		{"request_rate", number(highestRate, func(n int64) { l.RequestRate = float64(n) })},
		{"client_batch_size", number(highestConcurrency, func(n int64) { l.BatchSize = int(n) })},
		{"inputs", r.inputs},
	}, nil)
	_, closed := given["concurrency"]
	if rate, open := given["request_rate"]; open && closed {
		rate.fail(Error{Problem: "contradicts concurrency", Hint: "keep one of the two"})
	}
}

// highestConcurrency limits the requests in flight, and the rows in one request.
const highestConcurrency = 1 << 20

// metrics reads a list of names, or of {name, margin}.
func (r gateReader) metrics(v value) {
	var seen []measure.Metric
	for _, e := range v.list() {
		before := len(e.doc.errors)
		m := r.metric(e)
		if len(e.doc.errors) == before {
			seen = appendMetric(e, seen, m.Metric)
			r.g.Metrics = append(r.g.Metrics, m)
		}
	}
}

// metric reads one metric.
func (r gateReader) metric(v value) GateMetric {
	var m GateMetric
	name := func(v value) {
		if metric, ok := v.goalMetric(); ok {
			checkCost(v, metric)
			m.Metric = metric
		}
	}
	if v.node.Kind != yaml.MappingNode {
		name(v)
		m.Margin = DefaultMargin(m.Metric)
		return m
	}
	given := v.mapping([]field{
		{"name", name},
		{"margin", func(v value) {
			if share, ok := v.openShare("nobody can prove that a candidate is not worse by anything"); ok {
				m.Margin = share
			}
		}},
	}, nil)
	if _, has := given["name"]; !has {
		v.fail(Error{Problem: "has no name", Allowed: "{name: METRIC, margin: SHARE}"})
	}
	if _, has := given["margin"]; !has {
		m.Margin = DefaultMargin(m.Metric)
	}
	return m
}

// checkCost refuses the cost, which no gate can judge.
func checkCost(v value, m measure.Metric) {
	if m == measure.Cost {
		v.fail(Error{Problem: "follows from throughput and a price", Hint: "name throughput"})
	}
}

// limits reads {metric: {min | max}} and the limit of accuracy.
func (r gateReader) limits(v value) {
	r.g.Limits = v.constraints(r.accuracyLimit)
	for _, c := range r.g.Limits {
		checkCost(v.child(string(c.Metric)), c.Metric)
	}
}

// accuracy reads the data for the comparison of outputs.
func (r gateReader) accuracy(v value) {
	a := &r.p.Accuracy
	v.mapping([]field{
		{"data", func(v value) { r.file(v, &a.Data) }},
		{"rows", func(v value) {
			if n, ok := v.whole(1, 1_000_000); ok {
				a.Rows = int(n)
			}
		}},
		{"command", func(v value) {
			if text, ok := v.text(); ok {
				a.Command = text
			}
		}},
	}, nil)
}

// check detects missing fields, and fields that contradict each other.
func (r gateReader) check(root value, given map[string]value) {
	if _, has := given["candidate"]; !has {
		root.doc.addError(Error{Line: max(root.node.Line, 1), Path: "candidate", Problem: "is required", Allowed: "an ONNX file or a Triton model folder",
			Hint: "add a line candidate: FILE"})
	}
	_, hasBaseline := given["baseline"]
	metrics, hasMetrics := given["metrics"]
	if hasMetrics && !hasBaseline {
		metrics.fail(Error{Problem: "cannot be compared without a baseline", Hint: "add a line baseline: FILE, or bound them by limits: {METRIC: {max: …}}"})
	}
	if i := slices.IndexFunc(r.g.Metrics, func(m GateMetric) bool { return m.Metric == measure.Throughput }); i >= 0 && r.g.Load.RequestRate > 0 {
		metrics.fail(Error{Problem: fmt.Sprintf("cannot compare throughput at %g requests/s: the request rate fixes it", r.g.Load.RequestRate),
			Hint: "name a latency, or write load: {concurrency: N}"})
	}
	r.checkGPUMemory(given)
	r.checkAccuracy(given)
}

// checkGPUMemory refuses a metric that covers all processes if both sides have one.
func (r gateReader) checkGPUMemory(given map[string]value) {
	if r.g.Baseline.Model == "" {
		return
	}
	mistake := Error{Problem: "cannot compare the gpu_memory of two engines: both are on the GPUs at the same time",
		Hint: "bound the candidate's in a gate without a baseline, or compare with a saved one"}
	if slices.ContainsFunc(r.g.Metrics, func(m GateMetric) bool { return m.Metric == measure.GPUMemory }) {
		given["metrics"].fail(mistake)
	}
	if slices.ContainsFunc(r.g.Limits, func(c search.Constraint) bool { return c.Metric == measure.GPUMemory }) {
		given["limits"].fail(mistake)
	}
}

// checkAccuracy combines the limit with the user's command, and reports contradictions.
func (r gateReader) checkAccuracy(given map[string]value) {
	a := &r.p.Accuracy
	if a.Limit == nil {
		if section, has := given[accuracyField]; has && len(section.doc.errors) == 0 {
			section.fail(Error{Problem: "has no effect without a limit", Hint: "write limits: {accuracy: {metric: cosine, min: 0.99}}, or remove the section"})
		}
		return
	}
	limit := given["limits"].child(accuracyField)
	a.Limit.Command = a.Command
	if err := a.Limit.Validate(); err != nil {
		limit.fail(Error{Problem: err.Error()})
	}
	if r.g.Baseline.Model == "" {
		limit.fail(Error{Problem: "needs the baseline's model: the candidate's outputs are compared with its outputs",
			Hint: "write baseline: FILE, an ONNX file or a Triton model folder"})
	}
}
