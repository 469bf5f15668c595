package data

import (
	"tuner/analyze"
	"tuner/measure"
	"tuner/search"
	"tuner/spec/knobs"
)

// The tables of several models have a column for each model's knobs, load and figures, with the model's name
// before theirs: knob_encoder.instance_count, encoder.request_rate, encoder.latency_p99.

// namesOfSeveral lists the knobs of the server and of all models.
func namesOfSeveral(r analyze.Result) []string {
	var names []string
	if !r.IsPipeline() {
		names = append(names, search.KnobIsolation)
	}
	for _, m := range r.Served() {
		if m.Calls { // a pipeline has no knobs of its own
			continue
		}
		for _, knob := range knobs.Names() {
			names = append(names, search.JoinKnob(m.Header.Model, knob))
		}
	}
	return names
}

// loadColumnsOfSeveral has the scale, and what each model gets at it.
func loadColumnsOfSeveral(r analyze.Result) []column {
	list := []column{known("scale", number, "×", "The factor of the profile's traffic.", func(x row) any { return some(x.load.Scale) })}
	for _, m := range r.Models {
		model := m.Header.Model
		of := func(x row) measure.Load { return x.load.Of(model) }
		list = append(list,
			known(model+".concurrency", whole, "requests", "Requests in flight to the model.", func(x row) any { return someWhole(of(x).Concurrency) }),
			known(model+".request_rate", number, "requests/s", "Requests per second to the model.", func(x row) any { return some(of(x).RequestRate) }),
			known(model+".batch_size", whole, "inferences", "Inferences in one request to the model.", func(x row) any { return someWhole(of(x).BatchSize) }))
	}
	return list
}

// metricsOfSeveral lists the metrics of each of several models.
func metricsOfSeveral(r analyze.Result) []measure.Metric {
	var list []measure.Metric
	for _, m := range r.Models {
		for _, metric := range analyze.OwnMetrics() {
			list = append(list, metric.Of(m.Header.Model))
		}
	}
	return list
}
