// Package plots reads the charts that a user asks for besides the usual ones. It stands beside the other readers
// below package spec, and draws nothing.
package plots

import (
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/spec/document"
	"tuner/spec/goals"
)

// Plot is a chart that the user requests, like those in Model Analyzer's report: y over x, with a
// curve for each configuration.
type Plot struct {
	Name        string         // of the file plots/simple/NAME.png
	Title       string         // "": Y against X
	X           measure.Metric // "": the load
	Y           measure.Metric
	IsMonotonic bool // only points whose y is higher than that of all points with a lower x
}

// loadAxes are the names of the load as an x axis. A campaign has only one of them.
func loadAxes() []string { return []string{"concurrency", "request_rate"} }

// Read reads a mapping from names to charts.
func Read(v document.Value) []Plot {
	var list []Plot
	v.Mapping(nil, func(key, v document.Value) bool {
		p := Plot{Name: key.Node.Value}
		if modelconfig.ServableName(p.Name) != p.Name {
			key.Fail(document.Error{Problem: "is not usable as the name of a file", Allowed: "letters, digits and _ . - (not first)"})
		}
		given := v.Mapping(p.fields(), nil)
		for _, axis := range []string{"x_axis", "y_axis"} {
			if _, has := given[axis]; !has {
				v.Fail(document.Error{Problem: "has no " + axis, Hint: "write {x_axis: latency_p99, y_axis: throughput}"})
			}
		}
		list = append(list, p)
		return true
	})
	return list
}

func (p *Plot) fields() []document.Field {
	return []document.Field{
		{Name: "title", Read: func(v document.Value) {
			if text, ok := v.Text(); ok {
				p.Title = text
			}
		}},
		{Name: "x_axis", Read: func(v document.Value) {
			for _, load := range loadAxes() {
				if v.Node.Value == load {
					return
				}
			}
			p.X, _ = goals.Metric(v, loadAxes()...)
		}},
		{Name: "y_axis", Read: func(v document.Value) { p.Y, _ = goals.Metric(v) }},
		{Name: "monotonic", Read: func(v document.Value) {
			if on, ok := v.Flag(); ok {
				p.IsMonotonic = on
			}
		}},
	}
}
