package goals

import (
	"fmt"
	"slices"
	"strings"

	"tuner/internal/words"
	"tuner/measure"
	"tuner/search"
	"tuner/spec/document"
)

// Model is one of several models, with the limits of its own.
type Model struct {
	Name        string
	Constraints []search.Constraint
}

// OfSeveral reads the goal of several models from the fields of a file: the limits of all models, those
// of the server, and the objective. Without one the objective is the scale.
func OfSeveral(given map[string]document.Value, models []Model) search.Goal {
	goal := search.Goal{Objective: Single(measure.Scale), Constraints: []search.Constraint{}}
	var names []string
	for _, m := range models {
		names = append(names, m.Name)
		for _, c := range m.Constraints {
			c.Metric = c.Metric.Of(m.Name)
			goal.Constraints = append(goal.Constraints, c)
		}
	}
	if v, has := given["constraints"]; has {
		goal.Constraints = append(goal.Constraints, ofServer(v)...)
	}
	if v, has := given["objective"]; has {
		if m, ok := metricOf(v, names); ok {
			goal.Objective = Single(m)
		}
	}
	if v, has := given["weights"]; has {
		goal.Objective = search.Objective{}
		v.Mapping(nil, func(key, v document.Value) bool {
			m, known := metricOf(key, names)
			if w, ok := v.Number("a weight above 0"); known && ok {
				goal.Objective.Terms = append(goal.Objective.Terms, search.Term{Metric: m, Weight: w})
			}
			return true
		})
		if len(v.Node.Content) == 0 {
			v.Fail(document.Error{Problem: "has no metric", Allowed: "metric: weight, at least one"})
		}
	}
	return goal
}

// ofServer reads the limits of the server, and reports those that belong to a model.
func ofServer(v document.Value) []search.Constraint {
	list := Constraints(v, func(v document.Value) {
		v.Fail(document.Error{Problem: "belongs to a model", Hint: "write models: {NAME: {constraints: {accuracy: …}}}"})
	})
	return slices.DeleteFunc(list, func(c search.Constraint) bool {
		if slices.Contains(serverMetrics(), c.Metric) {
			return false
		}
		v.Child(string(c.Metric)).Fail(document.Error{Problem: fmt.Sprintf("limits %s, which is not a figure of the whole server", c.Metric),
			Allowed: textOf(serverMetrics()), Hint: fmt.Sprintf("write models: {NAME: {constraints: {%s: …}}}", c.Metric)})
		return true
	})
}

// IsServers reports whether a metric is a figure of the server, and not of one of its models.
func IsServers(m measure.Metric) bool {
	return slices.Contains(serverMetrics(), m) || m == measure.Energy || m == measure.Cost
}

// serverMetrics lists the metrics of a server with several models that a goal may have.
func serverMetrics() []measure.Metric {
	return []measure.Metric{measure.Memory, measure.CPU, measure.GPUMemory, measure.GPUUtilization, measure.GPUPower}
}

func textOf(list []measure.Metric) string {
	return strings.Join(mapped(list, func(m measure.Metric) string { return string(m) }), ", ")
}

// metricOf reads a metric of an objective of named models: scale, a figure of the server, or one of a
// model, with its name.
func metricOf(v document.Value, names []string) (measure.Metric, bool) {
	m := measure.Metric(v.Node.Value)
	own := append([]measure.Metric{measure.Scale}, serverMetrics()...)
	if slices.Contains(own, m) {
		return m, true
	}
	model, of := m.Split()
	isKnown := slices.Contains(names, model)
	if isKnown && !IsServers(of) && of != measure.ErrorRate {
		return m, true
	}
	example := measure.Throughput.Of("NAME")
	if len(names) > 0 {
		example = measure.Throughput.Of(names[0])
	}
	e := document.Error{Problem: "is not a metric of this server", Allowed: fmt.Sprintf("%s, NAME.METRIC of a model, such as %s", textOf(own), example)}
	if near := words.Nearest(model, names); model != "" && !isKnown && near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", of.Of(near))
	}
	v.Fail(e)
	return "", false
}
