package accuracy_test

import (
	"reflect"
	"testing"

	"tuner/internal/schema"
	"tuner/model/precision/accuracy"
	"tuner/spec/reference/referencetest"
)

// The committed page of a comparison is generated from its types.
func TestPageIsGenerated(t *testing.T) {
	t.Parallel()
	referencetest.CheckFields(t, "accuracy-fields.md", schema.Options{
		Title: "Accuracy: fields of a comparison",
		Description: "A comparison of a variant's outputs with the original's, as journal.jsonl, result.json, ortsweep's\n" +
			"result.json and `tuner convert --format json` have it. [Metrics](convert.md#metrics) explains the\n" +
			"figures. A figure that makes no sense for an output is `null`.",
		Types: map[reflect.Type]string{reflect.TypeFor[accuracy.Figures](): "[figures](#figures)"},
	},
		schema.Chapter{Title: "Comparison", Type: reflect.TypeFor[accuracy.Report]()},
		schema.Chapter{Title: "Figures", Text: "Figures of one output.", Type: reflect.TypeFor[accuracy.StoredFigures]()},
	)
}
