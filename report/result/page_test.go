package result

import (
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"tuner/internal/schema"
	"tuner/measure"
	"tuner/model/precision/accuracy"
	"tuner/search"
	"tuner/spec/reference/referencetest"
)

// The committed page of result.json is generated from its types.
func TestPageIsGenerated(t *testing.T) {
	t.Parallel()
	referencetest.CheckFields(t, "result-fields.md", schema.Options{
		Title: "result.json: fields",
		Description: "`tuner analyze` writes result.json, and prints the same with `--format json`.\n" +
			"[Result files](results.md) explains the figures, and [result.schema.json](result.schema.json) is the\n" +
			"JSON Schema of the file. Times are seconds, sizes bytes, rates per second. Optional fields are left\n" +
			"out where they do not apply. `format` grows when a field changes its meaning or disappears. Other\n" +
			"fields may be added within a format.",
		Types: map[reflect.Type]string{
			reflect.TypeFor[measure.Metric]():   "[metric](metrics.md)",
			reflect.TypeFor[search.Candidate](): "list of `knob` and `value`",
			reflect.TypeFor[measure.Mix]():      "list of `model` with its load",
			reflect.TypeFor[accuracy.Report]():  "[comparison](accuracy-fields.md#comparison)",
			reflect.TypeFor[jsontext.Value]():   "JSON object",
		},
	},
		schema.Chapter{Title: "Result", Text: "The whole file.", Type: reflect.TypeFor[Result]()},
		schema.Chapter{Title: "Configuration", Type: reflect.TypeFor[Configuration]()},
		schema.Chapter{Title: "Explanation", Type: reflect.TypeFor[Explanation]()},
		schema.Chapter{Title: "Variant", Type: reflect.TypeFor[Variant]()},
		schema.Chapter{Title: "Origin", Type: reflect.TypeFor[Origin]()},
	)
}
