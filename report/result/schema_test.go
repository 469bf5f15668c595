package result

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"tuner/internal/golden"
	"tuner/internal/schema"
	"tuner/measure"
	"tuner/model/precision/accuracy"
	"tuner/search"
)

const schemaPath = "../../docs/reference/result.schema.json"

// metricPattern matches the metrics, with any percentile of the latency.
func metricPattern() string {
	var names []string
	for _, m := range append(measure.Metrics(), measure.ErrorRate, measure.Scale) {
		if _, isPercentile := m.Quantile(); !isPercentile {
			names = append(names, regexp.QuoteMeta(string(m)))
		}
	}
	return "^([A-Za-z0-9][A-Za-z0-9_-]*[.])?(" + strings.Join(names, "|") + "|latency_p[0-9.]+)$"
}

// The committed schema is generated from the types. `go test ./report/result -update` writes it.
func TestSchemaIsGenerated(t *testing.T) {
	t.Parallel()
	got, err := schema.Generate(reflect.TypeFor[Result](), schema.Options{
		Title: "result.json of tuner, format 1",
		Description: "What tuner analyze found. Times are seconds, sizes bytes, rates per second. New fields may appear. " +
			"The format grows when a field changes its meaning or goes away. docs/reference/result-fields.md lists the fields.",
		Module: "../..", ModulePath: "tuner",
		Types: map[reflect.Type]string{
			reflect.TypeFor[measure.Metric](): `{"type": "string", "pattern": "` + metricPattern() + `"}`,
			reflect.TypeFor[search.Candidate](): `{"type": "array", "items": {"type": "object", "required": ["knob", "value"],
				"properties": {"knob": {"type": "string"}, "value": {"type": "string"}}}}`,
			reflect.TypeFor[measure.Mix](): `{"type": "array", "items": {"type": "object", "required": ["model", "batch_size"], "additionalProperties": false,
				"properties": {"model": {"type": "string"}, "concurrency": {"type": "integer", "minimum": 1}, "request_rate": {"type": "number", "exclusiveMinimum": 0}, "batch_size": {"type": "integer", "minimum": 1}}}}`,
			reflect.TypeFor[accuracy.Report](): `{"type": "object"}`,
		},
		Keywords: map[reflect.Type]string{
			reflect.TypeFor[Result]():            `{"anyOf": [{"required": ["windows", "ending", "time", "origin"]}, {"required": ["recorded"]}]}`,
			reflect.TypeFor[Sample]():            `{"dependentRequired": {"windows": ["launches", "requests", "errors"]}}`,
			reflect.TypeFor[measure.Load]():      `{"oneOf": [{"required": ["concurrency"]}, {"required": ["request_rate"]}, {"required": ["scale", "mix"]}]}`,
			reflect.TypeFor[search.Constraint](): `{"anyOf": [{"required": ["min"]}, {"required": ["max"]}]}`,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, schemaPath, got)
}
