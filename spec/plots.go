package spec

import "tuner/measure"

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

// plots reads a mapping from names to charts.
func (v value) plots() []Plot {
	var list []Plot
	v.mapping(nil, func(key, v value) bool {
		p := Plot{Name: key.node.Value}
		if servableName(p.Name) != p.Name {
			key.fail(Error{Problem: "is not usable as the name of a file", Allowed: "letters, digits and _ . - (not first)"})
		}
		given := v.mapping(p.fields(), nil)
		for _, axis := range []string{"x_axis", "y_axis"} {
			if _, has := given[axis]; !has {
				v.fail(Error{Problem: "has no " + axis, Hint: "write {x_axis: latency_p99, y_axis: throughput}"})
			}
		}
		list = append(list, p)
		return true
	})
	return list
}

func (p *Plot) fields() []field {
	return []field{
		{"title", func(v value) {
			if text, ok := v.text(); ok {
				p.Title = text
			}
		}},
		{"x_axis", func(v value) {
			for _, load := range loadAxes() {
				if v.node.Value == load {
					return
				}
			}
			p.X, _ = v.metric(loadAxes()...)
		}},
		{"y_axis", func(v value) { p.Y, _ = v.metric() }},
		{"monotonic", func(v value) {
			if on, ok := v.flag(); ok {
				p.IsMonotonic = on
			}
		}},
	}
}
