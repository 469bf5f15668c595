// Package goals reads objectives, constraints and prices in the user's files. It stands beside the other
// readers below package spec, and knows no other field of a file.
package goals

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"tuner/internal/words"
	"tuner/measure"
	"tuner/search"
	"tuner/spec/document"
)

// MetricTag is the name of a metric in Triton Model Analyzer.
type MetricTag struct {
	Tag    string
	Metric measure.Metric
}

// MetricTags lists the metrics that Triton Model Analyzer names in another way.
func MetricTags() []MetricTag {
	return []MetricTag{
		{"perf_throughput", measure.Throughput},
		{"perf_latency_avg", measure.LatencyAvg},
		{"perf_latency_p90", measure.LatencyP90},
		{"perf_latency_p95", measure.LatencyP95},
		{"perf_latency_p99", measure.LatencyP99},
		{"perf_server_queue", measure.QueueTime},
		{"perf_server_compute_input", measure.ComputeInput},
		{"perf_server_compute_infer", measure.ComputeInfer},
		{"perf_server_compute_output", measure.ComputeOutput},
		{"cpu_used_ram", measure.Memory},
		{"gpu_used_memory", measure.GPUMemory},
		{"gpu_power_usage", measure.GPUPower},
	}
}

// TagMetric returns the metric of a Triton Model Analyzer tag with another name; "" without one.
func TagMetric(tag string) measure.Metric {
	for _, t := range MetricTags() {
		if t.Tag == tag {
			return t.Metric
		}
	}
	return ""
}

// anyPercentile and anyGoodput stand for the latency percentiles and the goodputs in lists of allowed
// names.
const (
	anyPercentile = "latency_pN"
	anyGoodput    = "goodput_Nms"
)

// AccuracyField is the name of the constraint that limits how far outputs differ from the original's.
const AccuracyField = "accuracy"

// latencyPrefix begins the names of latencies. A goal may leave it out.
const latencyPrefix = "latency_"

// Metric reads the name of a metric, or its tag in Model Analyzer. others are additional allowed
// names, which the caller handles.
func Metric(v document.Value, others ...string) (measure.Metric, bool) {
	name := v.Node.Value
	if m := TagMetric(name); m != "" {
		return m, true
	}
	for _, m := range []measure.Metric{measure.Metric(name), latencyPrefix + measure.Metric(name)} { // reports say "p99"
		if _, known := m.Info(); known && isPlain(m) {
			return m, true
		}
	}
	known := append(mapped(measure.Metrics(), func(m measure.Metric) string { return string(m) }), others...)
	e := document.Error{Problem: "is not a metric", Allowed: strings.Join(append(known, anyPercentile, anyGoodput), ", ")}
	switch near := words.Nearest(name, known); {
	case strings.HasPrefix(name, "goodput"):
		e.Hint = "name the limit on the latency in milliseconds: " + goodputExample(name)
	case name == AccuracyField:
		e.Problem, e.Hint = "cannot be accuracy, which is only a constraint", "write constraints: {accuracy: {metric: cosine, min: 0.99}}"
	case near != "":
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	v.Fail(e)
	return "", false
}

// isPlain reports whether a metric is one of a single model: without a model's name, and no scale.
func isPlain(m measure.Metric) bool {
	model, of := m.Split()
	return model == "" && of != measure.Scale
}

// goodputExample returns the metric that a wrong name of a goodput most likely means.
func goodputExample(name string) string {
	limit, err := time.ParseDuration(strings.TrimPrefix(name, "goodput_"))
	if m := measure.Goodput(limit); err == nil && m.IsGoodput() {
		return string(m)
	}
	return "goodput_50ms"
}

// OfGoal is metric for goals and gates, which limit failed requests in their own way.
func OfGoal(v document.Value, others ...string) (measure.Metric, bool) {
	m, ok := Metric(v, others...)
	if m == measure.ErrorRate && !v.IsRecorded() {
		v.Fail(document.Error{Problem: "has a fixed limit: a load at which more than 1 % of the requests fail satisfies nothing", Hint: "remove it"})
		return "", false
	}
	return m, ok
}

// Single returns the objective with one metric.
func Single(m measure.Metric) search.Objective {
	return search.Objective{Terms: []search.Term{{Metric: m, Weight: 1}}}
}

// reader reads the name of a metric, like OfGoal.
type reader func(v document.Value, others ...string) (measure.Metric, bool)

// Objective reads one metric.
func Objective(v document.Value) search.Objective { return objective(v, OfGoal) }

func objective(v document.Value, read reader) search.Objective {
	if len(v.Node.Content) > 0 {
		v.Fail(document.Error{Problem: "must be one metric", Hint: "several, weighted: weights: {throughput: 10, latency_p99: 5}"})
		return search.Objective{}
	}
	m, ok := read(v)
	if !ok {
		return search.Objective{}
	}
	return Single(m)
}

// Weights reads {metric: weight}.
func Weights(v document.Value) search.Objective { return weights(v, OfGoal) }

func weights(v document.Value, read reader) search.Objective {
	var o search.Objective
	var seen []measure.Metric
	v.Mapping(nil, func(key, v document.Value) bool {
		m, known := read(key)
		if !known {
			return true
		}
		seen = AppendMetric(key, seen, m)
		if w, ok := v.Number("a weight above 0"); ok {
			o.Terms = append(o.Terms, search.Term{Metric: m, Weight: w})
		}
		return true
	})
	if len(v.Node.Content) == 0 {
		v.Fail(document.Error{Problem: "has no metric", Allowed: "metric: weight, at least one"})
	}
	return o
}

// AppendMetric appends m. It reports m if it was named already, maybe by its other name.
func AppendMetric(v document.Value, seen []measure.Metric, m measure.Metric) []measure.Metric {
	if slices.Contains(seen, m) {
		v.Fail(document.Error{Problem: fmt.Sprintf("names the metric %s a second time", m), Hint: "keep one of the two"})
		return seen
	}
	return append(seen, m)
}

// Constraints reads {metric: {min | max}}. The result is not nil, so that "no constraint" differs
// from "not set". accuracy reads the constraint of that name, which limits no measured metric.
func Constraints(v document.Value, accuracy func(document.Value)) []search.Constraint {
	return constraints(v, accuracy, OfGoal)
}

func constraints(v document.Value, accuracy func(document.Value), read reader) []search.Constraint {
	list := []search.Constraint{}
	var seen []measure.Metric
	v.Mapping(nil, func(key, v document.Value) bool {
		if key.Node.Value == AccuracyField {
			accuracy(v)
			return true
		}
		m, known := read(key, AccuracyField)
		if !known {
			return true
		}
		seen = AppendMetric(key, seen, m)
		if c, ok := constraint(v, m); ok {
			list = append(list, c)
		}
		return true
	})
	return list
}

// constraint reads the limit of a metric: a minimum if higher is better, and else a maximum. A bare
// value is that. A utilisation may have both, so that a GPU neither idles nor is full.
func constraint(v document.Value, m measure.Metric) (search.Constraint, bool) {
	info, _ := m.Info()
	c := search.Constraint{Metric: m}
	read := func(target **float64) func(document.Value) {
		return func(v document.Value) {
			if x, ok := bound(v, info.Unit); ok {
				*target = &x
			}
		}
	}
	wrong := func(given, right string) func(document.Value) {
		return func(v document.Value) {
			v.Fail(document.Error{Problem: fmt.Sprintf("would reject the better values of %s", m), Allowed: right, Hint: "write " + right + " instead of " + given})
		}
	}
	least, most, allowed := document.Field{Name: "min", Read: read(&c.Min)}, document.Field{Name: "max", Read: read(&c.Max)}, "{min: …, max: …}"
	switch {
	case m == measure.GPUUtilization:
	case info.HigherBetter:
		most.Read, allowed = wrong("max", "min"), "{min: …}"
	default:
		least.Read, allowed = wrong("min", "max"), "{max: …}"
	}
	if v.Node.Kind == yaml.ScalarNode && m != measure.GPUUtilization { // the only allowed side
		side := most
		if info.HigherBetter {
			side = least
		}
		side.Read(v)
		return c, c.Min != nil || c.Max != nil
	}
	given := v.Mapping([]document.Field{least, most}, nil)
	switch {
	case len(given) == 0 && v.Node.Kind == yaml.MappingNode:
		v.Fail(document.Error{Problem: "is a constraint without a bound", Allowed: allowed})
	case c.Min != nil && c.Max != nil && *c.Min > *c.Max:
		v.Fail(document.Error{Problem: "has a min above its max", Hint: "swap the two"})
		return c, false
	}
	return c, c.Min != nil || c.Max != nil
}

// bound reads a value above 0 in the base unit. As in Model Analyzer, a bare latency is in
// milliseconds and a bare size in megabytes.
func bound(v document.Value, unit measure.Unit) (float64, bool) {
	switch unit {
	case measure.Seconds:
		return v.Latency()
	case measure.Bytes:
		return v.Size()
	case measure.Share:
		x, ok := v.Share()
		if ok && x == 0 {
			v.Fail(document.Error{Problem: "must be above 0", Allowed: "0% to 100%, or 0 to 1"})
		}
		return x, ok && x > 0
	}
	return v.Number(fmt.Sprintf("a number above 0, in %s", unit))
}

// Price reads {per_hour}, the cost of an hour of the machine. It returns 0 after a mistake.
func Price(v document.Value) float64 {
	price := 0.0
	given := v.Mapping([]document.Field{{Name: "per_hour", Read: func(v document.Value) { price, _ = v.Number("a number above 0, in any currency") }}}, nil)
	if _, has := given["per_hour"]; !has && v.Node.Kind == yaml.MappingNode {
		v.Fail(document.Error{Problem: "has no number", Allowed: "{per_hour: …}"})
	}
	return price
}

// CheckPrice reports a cost without a price.
func CheckPrice(given map[string]document.Value) {
	if _, has := given["price"]; has {
		return
	}
	for _, name := range []string{"objective", "weights", "constraints"} {
		v, has := given[name]
		if !has {
			continue
		}
		// For a mapping, report the entry. For a single metric, report the value.
		if cost := v.Child(string(measure.Cost)); cost.Node != v.Node || v.Node.Value == string(measure.Cost) {
			cost.Fail(document.Error{Problem: "needs the price of the machine", Hint: "add a line price: {per_hour: 0.40}, in any currency"})
		}
	}
}

// ConfidenceAllowed describes the allowed probabilities. A limit that is missed as often as it is
// kept is not kept. No measurement is certain.
const ConfidenceAllowed = "a probability between 0.5 and 1, such as 0.9"

// IsConfidence reports whether a probability is allowed.
func IsConfidence(p float64) bool { return p > 0.5 && p < 1 }

// Confidence reads the probability with which constraints must hold.
func Confidence(v document.Value, target *float64) {
	p, ok := v.Float()
	if !ok || !IsConfidence(p) {
		v.Fail(document.Error{Problem: "must be a probability", Allowed: ConfidenceAllowed})
		return
	}
	*target = p
}

// mapped applies f to each element.
func mapped[A, B any](list []A, f func(A) B) []B {
	result := make([]B, len(list))
	for i, x := range list {
		result[i] = f(x)
	}
	return result
}
