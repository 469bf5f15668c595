// Package gates reads a gate.yaml of one model, or of several models on one server. Below `models:` each model has
// the fields of a gate that belong to it, and all others are the server's. Package spec reads the fields of one.
package gates

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tuner/measure"
	"tuner/ort/addon"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/document"
	"tuner/spec/goals"
)

// Field is the name of the section of several models.
const Field = "models"

// OfModel lists the fields of a gate that belong to one of several models.
func OfModel() []string {
	return []string{"candidate", "baseline", "load", "metrics", "limits", "accuracy"}
}

// ofServer lists the fields of a gate of several models beside their section, without the sides.
func ofServer() []string {
	return []string{"name", "output", "history", "metrics", "limits", "budget", "window", "inconclusive", addon.FileField, addon.ProviderField}
}

// Parse reads a gate.yaml as spec.ParseGate does, also one of several models.
func Parse(path string, text []byte) (spec.Gate, error) {
	d := document.New(path, spec.GateNeedsNoFile)
	root, ok := d.Open(text)
	if !ok || !slices.ContainsFunc(root.Keys(), func(key document.Value) bool { return key.Node.Value == Field }) {
		return spec.ParseGate(path, text)
	}
	r := reader{path: path, root: root}
	r.read()
	if err := d.Err(); err != nil {
		return spec.Gate{}, err
	}
	r.gate.Text = slices.Clone(text)
	return r.joined(), nil
}

// reader reads a file of several models.
type reader struct {
	path string
	root document.Value
	gate spec.Gate // the server's fields, and the models
}

func (r *reader) read() {
	var section document.Value
	r.gate = spec.ReadGate(r.path, r.root, func(key, v document.Value) bool {
		switch name := key.Node.Value; name {
		case Field:
			section = v
		case "baseline", "candidate", "load", "accuracy":
			key.Fail(document.Error{Problem: "belongs to a model", Hint: fmt.Sprintf("write %s: {NAME: {%s: …}}", Field, name)})
		default:
			return false
		}
		return true
	}, ofServer()...)
	section.Mapping(nil, func(key, v document.Value) bool {
		if g, ok := r.model(key, v); ok {
			r.gate.Models = append(r.gate.Models, g)
		}
		return true
	})
	spec.CheckNumberOfModels(section, "NAME: {candidate: FILE, load: {request_rate: …}, …}")
	r.checkSides(section)
	r.checkServers(section)
	r.checkServer()
}

// model reads one model. The result is a gate of it alone.
func (r *reader) model(key, v document.Value) (spec.Gate, bool) {
	if !spec.IsNameOfSeveral(key) {
		return spec.Gate{}, false
	}
	before := v.Mistakes()
	g := spec.ReadGate(r.path, v, misplaced, OfModel()...)
	g.Name = key.Node.Value
	if v.Node.Kind != yaml.MappingNode {
		return spec.Gate{}, false
	}
	if g.Baseline.Saved != "" {
		v.Child("baseline").Fail(document.Error{Problem: "is a saved baseline, which is of one model", Hint: "name the baseline's model: both sides are then measured in turn"})
	}
	if g.Load.Concurrency == 0 && g.Load.RequestRate == 0 && v.Mistakes() == before {
		v.Require("load", "{request_rate: 120}, or {concurrency: 8}", "say how much traffic the model has: all models are under load together")
	}
	if g.Arrivals.HasPeriod() {
		v.Child("load").Child("arrivals").Fail(document.Error{Problem: "repeats, which is not supported beside models: common windows would have to hold whole periods of all", Allowed: "poisson, constant, {gamma: {cv: NUMBER}}"})
	}
	for _, m := range g.Metrics {
		checkOwn(v.Child("metrics"), m.Metric, fmt.Sprintf("metrics: [%s]", m.Metric))
	}
	for _, c := range g.Limits {
		checkOwn(v.Child("limits").Child(string(c.Metric)), c.Metric, fmt.Sprintf("limits: {%s: …}", c.Metric))
	}
	return g, v.Mistakes() == before
}

// checkOwn reports a metric below a model that is not the model's. field is one with that metric.
func checkOwn(at document.Value, m measure.Metric, field string) {
	switch {
	case m == measure.Energy: // that of an inference
		at.Fail(document.Error{Problem: "names energy, which is not known of each of several models", Hint: "gate the model alone, or name gpu_power at the top of the file"})
	case isOfServer(m):
		at.Fail(document.Error{Problem: fmt.Sprintf("names %s, which is a figure of the server and not of one model", m),
			Hint: fmt.Sprintf("write %s at the top of the file", field)})
	}
}

// isOfServer reports whether a server of several models has a metric.
func isOfServer(m measure.Metric) bool {
	return goals.IsServers(m) && m != measure.Energy && m != measure.Cost
}

// misplaced reports fields of the server below a model.
func misplaced(key, _ document.Value) bool {
	name := key.Node.Value
	if !slices.Contains(ofServer(), name) {
		return false
	}
	hint := "write it at the top of the file"
	if name == "name" {
		hint = fmt.Sprintf("the model is served under its key in %s", Field)
	}
	key.Fail(document.Error{Problem: "does not belong to one of several models", Hint: hint})
	return true
}

// checkSides reports a baseline that only some models have, since a server with the others alone is another one.
func (r *reader) checkSides(section document.Value) {
	for _, m := range r.gate.Models {
		if m.Baseline.IsZero() == r.hasBaseline() {
			here, there := "has no baseline", "has one"
			if !r.hasBaseline() {
				here, there = "has a baseline", "has none"
			}
			section.Child(m.Name).Fail(document.Error{Problem: fmt.Sprintf("%s, and %s %s", here, r.gate.Models[0].Name, there),
				Hint: "name a baseline for each model, which is the candidate's file where nothing changed; or for none"})
		}
	}
}

// checkServers reports models of a side that name another runtime or engine than the first one, since one server
// serves them all.
func (r *reader) checkServers(section document.Value) {
	for _, m := range r.gate.Models {
		first := r.gate.Models[0]
		for _, side := range []struct {
			field      string
			own, first spec.GateSide
		}{{"baseline", m.Baseline, first.Baseline}, {"candidate", m.Candidate, first.Candidate}} {
			if side.own.Runtime != side.first.Runtime || side.own.Engine != side.first.Engine {
				section.Child(m.Name).Child(side.field).Fail(document.Error{Problem: fmt.Sprintf("has another runtime or engine than %s, and one server serves all models of a side", first.Name),
					Hint: "write the same for each model, or for none"})
			}
		}
	}
}

func (r *reader) hasBaseline() bool {
	return len(r.gate.Models) > 0 && !r.gate.Models[0].Baseline.IsZero()
}

// checkServer reports metrics and limits at the top of the file that belong to a model.
func (r *reader) checkServer() {
	metrics, limits := r.root.Child("metrics"), r.root.Child("limits")
	both := []struct {
		at document.Value
		of []measure.Metric
	}{{metrics, nil}, {limits, nil}}
	for _, m := range r.gate.Metrics {
		both[0].of = append(both[0].of, m.Metric)
	}
	for _, c := range r.gate.Limits {
		both[1].of = append(both[1].of, c.Metric)
	}
	for _, section := range both {
		for _, m := range section.of {
			switch {
			case !isOfServer(m):
				section.at.Fail(document.Error{Problem: fmt.Sprintf("names %s, which is not a figure of the whole server", m), Allowed: "memory, cpu, gpu_memory, gpu_utilization, gpu_power",
					Hint: fmt.Sprintf("write it below a model: %s: {NAME: …}", Field)})
			case m == measure.GPUMemory && r.hasBaseline():
				section.at.Fail(spec.OnSameGPUs())
			}
		}
	}
	if r.gate.Accuracy.Limit != nil {
		limits.Child(goals.AccuracyField).Fail(document.Error{Problem: "belongs to a model", Hint: fmt.Sprintf("write %s: {NAME: {limits: {accuracy: …}}}", Field)})
	}
	if len(r.gate.Metrics) > 0 && !r.hasBaseline() {
		metrics.Fail(document.Error{Problem: "cannot be compared without baselines", Hint: "name the baselines of all models, or bound the metrics by limits: {METRIC: {max: …}}"})
	}
}

// joined returns the gate of all models. Its metrics and limits are those of each, with its name, and then the
// server's.
func (r *reader) joined() spec.Gate {
	g := r.gate
	var names []string
	var metrics []spec.GateMetric
	var limits []search.Constraint
	for i, m := range g.Models {
		names = append(names, m.Name)
		m = m.Defaulted()
		m.Path = fmt.Sprintf("%s: %s.%s", g.Path, Field, m.Name)
		for _, one := range m.Metrics {
			metrics = append(metrics, spec.GateMetric{Metric: one.Metric.Of(m.Name), Margin: one.Margin})
		}
		for _, c := range m.Limits {
			c.Metric = c.Metric.Of(m.Name)
			limits = append(limits, c)
		}
		g.Models[i] = m
	}
	g.Metrics, g.Limits = append(metrics, g.Metrics...), append(limits, g.Limits...)
	if g.Name == "" {
		g.Name = strings.Join(names, "+")
	}
	g = g.Defaulted()
	first := g.Models[0]
	g.Baseline = spec.GateSide{Runtime: first.Baseline.Runtime, Engine: first.Baseline.Engine}
	g.Candidate = spec.GateSide{Runtime: first.Candidate.Runtime, Engine: first.Candidate.Engine}
	return g
}
