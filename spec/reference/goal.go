package reference

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tuner/measure"
	"tuner/model/precision/accuracy"
	"tuner/spec/goals"
)

// otherPercentile matches the names of latency percentiles that have no column of their own.
const otherPercentile = "^(latency_)?p[0-9]+(\\\\.[0-9]+)?$"

// isPercentile is otherPercentile for names without a fraction.
var isPercentile = regexp.MustCompile(`^(latency_)?p[0-9]+$`)

// goodputs matches the names of goodputs.
const goodputs = "^goodput_[0-9]+(\\\\.[0-9]+)?ms$"

// tags returns the other names of a metric: Model Analyzer's, and that of a latency in reports.
func tags(m measure.Metric) []string {
	var list []string
	if short, isLatency := strings.CutPrefix(string(m), "latency_"); isLatency {
		list = append(list, short)
	}
	for _, t := range goals.MetricTags() {
		if t.Metric == m {
			list = append(list, t.Tag)
		}
	}
	return list
}

// metricNames lists the names of metrics in a goal, including their other names.
func metricNames() []string {
	var list []string
	for _, m := range measure.Metrics() {
		list = append(append(list, string(m)), tags(m)...)
	}
	return list
}

// metric is the type of a metric's name.
func metric() Type {
	return Type{Name: "[metric](metrics.md)", Schema: fmt.Sprintf(`{"anyOf": [{"enum": %s}, {"type": "string", "pattern": "%s"}, {"type": "string", "pattern": "%s"}]}`, raw(metricNames()), otherPercentile, goodputs),
		Good: []string{"throughput", "latency_p99.9", "perf_latency_p95", "p99", "goodput_50ms", "goodput_2.5ms"}, Bad: []string{"speed", "error_rate", "goodput", "goodput_2s"}}
}

// orOfSeveral returns the type of a metric that several models may have, too: their scale, or that of a
// model by its name. A reader knows the names.
func (t Type) orOfSeveral() Type {
	t.Schema = fmt.Sprintf(`{"anyOf": [%s, {"const": "scale"}, {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]*[.][a-z].*$"}]}`, t.Schema)
	return t
}

// weights is the type of a mapping from metrics of a type to weights.
func weights(of Type) Type {
	return Type{Name: "mapping: metric to number above 0",
		Schema: fmt.Sprintf(`{"type": "object", "minProperties": 1, "propertyNames": %s, "additionalProperties": %s}`, of.Schema, positive().Schema),
		Good:   []string{"{throughput: 10, latency_p99: 5}"}, Bad: []string{"{}", "{speed: 1}", "{throughput: 0}", "throughput"}}
}

// bound returns the schema of a metric's limit: a mapping with min, max, or either; or the value of
// the only side that is allowed.
func bound(m measure.Metric) string {
	info, _ := m.Info()
	value := `{"type": "number", "exclusiveMinimum": 0}`
	switch info.Unit {
	case measure.Seconds:
		value = fmt.Sprintf(`{"anyOf": [%s, {"type": "number", "exclusiveMinimum": 0}]}`, durationText)
	case measure.Bytes:
		value = `{"anyOf": [{"type": "string", "pattern": "^[0-9.e+]+ ?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$"}, {"type": "number", "exclusiveMinimum": 0}]}`
	case measure.Share:
		value = share(true).Schema
	}
	sides := fmt.Sprintf(`"max": %s`, value)
	switch {
	case m == measure.GPUUtilization:
		sides = fmt.Sprintf(`"min": %[1]s, "max": %[1]s`, value)
	case info.HigherBetter:
		sides = fmt.Sprintf(`"min": %s`, value)
	}
	mapping := fmt.Sprintf(`{"type": "object", "additionalProperties": false, "minProperties": 1, "properties": {%s}}`, sides)
	if m == measure.GPUUtilization {
		return mapping
	}
	return fmt.Sprintf(`{"anyOf": [%s, %s]}`, mapping, value)
}

// limits is the type of limits on metrics. With withAccuracy it includes the accuracy.
func limits(withAccuracy bool) Type {
	var properties []string
	for _, m := range measure.Metrics() {
		for _, name := range append([]string{string(m)}, tags(m)...) {
			if isPercentile.MatchString(name) {
				continue // patternProperties has it
			}
			properties = append(properties, fmt.Sprintf(`"%s": %s`, name, bound(m)))
		}
	}
	t := Type{Name: "mapping: metric to a limit, or to `{max: …}` or `{min: …}`",
		Good: []string{"{latency_p99: {max: 30ms}, memory: {max: 2GiB}}", "{throughput: {min: 100}}", "{latency_p99.9: {max: 40}}", "{goodput_50ms: {min: 300}}", "{p99: 30ms, throughput: 100}"},
		Bad:  []string{"{speed: {max: 1}}", "{latency_p99: {min: 30ms}}", "{throughput: {max: 100}}", "{memory: {}}", "{latency_p99: fast}", "{gpu_utilization: 50%}"}}
	if withAccuracy {
		properties = append(properties, fmt.Sprintf(`"accuracy": {"type": "object", "additionalProperties": false, "required": ["metric"],
			"properties": {"metric": {"enum": %s}, "min": {"type": "number"}, "max": {"type": "number"}}}`, raw(accuracy.Metrics())))
		t.Bad = append(t.Bad, "{accuracy: {metric: likeness, min: 1}}")
	}
	t.Schema = fmt.Sprintf(`{"type": "object", "additionalProperties": false, "properties": {%s}, "patternProperties": {"%s": %s, "%s": %s}}`,
		strings.Join(properties, ", "), otherPercentile, bound(measure.LatencyP99), goodputs, bound(measure.Throughput))
	return t
}

// orOfSeveralModels returns the type of limits that may name metrics of several models, with a model's name
// before each.
func (t Type) orOfSeveralModels() Type {
	const ofModel = `"^[A-Za-z0-9][A-Za-z0-9_-]*[.][a-z].*$": {}`
	t.Schema = strings.Replace(t.Schema, `"patternProperties": {`, `"patternProperties": {`+ofModel+`, `, 1)
	t.Good = append(slices.Clone(t.Good), "{encoder.latency_p99: 40ms, memory: 2GiB}")
	return t
}
