package ortsweep

import (
	"reflect"
	"testing"

	"tuner/internal/schema"
	"tuner/model/precision/accuracy"
	"tuner/search"
	"tuner/spec/reference/referencetest"
)

// The committed page of result.json is generated from its types.
func TestPageIsGenerated(t *testing.T) {
	t.Parallel()
	referencetest.CheckFields(t, "ortsweep-results-fields.md", schema.Options{
		Title: "tuner ortsweep: fields of result.json",
		Description: "`tuner ortsweep` writes result.json, and prints the same with `--format json`.\n" +
			"[ortsweep.yaml](ortsweep.md#results) explains the other files. Sizes are bytes.",
		Types: map[reflect.Type]string{
			reflect.TypeFor[search.Candidate](): "list of `knob` and `value`",
			reflect.TypeFor[accuracy.Report]():  "[comparison](accuracy-fields.md#comparison)",
		},
	},
		schema.Chapter{Title: "Result", Text: "The whole file.", Type: reflect.TypeFor[document]()},
	)
}
