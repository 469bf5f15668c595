package accuracy_test

import (
	"path/filepath"
	"reflect"
	"testing"

	"tuner/internal/golden"
	"tuner/internal/schema"
	"tuner/model/precision/accuracy"
	"tuner/spec/reference"
)

// The committed page of a comparison is generated from its types.
func TestPageIsGenerated(t *testing.T) {
	t.Parallel()
	page, err := schema.Tables(schema.Options{
		Title: "Accuracy: fields of a comparison",
		Description: "A comparison of a variant's outputs with the original's, as journal.jsonl, result.json, ortsweep's\n" +
			"result.json and `tuner convert --output json` have it. [Metrics](convert.md#metrics) explains the\n" +
			"figures. A figure that makes no sense for an output is `null`.",
		Module: "../../..", ModulePath: "tuner",
		Types: map[reflect.Type]string{reflect.TypeFor[accuracy.Figures](): "[figures](#figures)"},
	},
		schema.Chapter{Title: "Comparison", Type: reflect.TypeFor[accuracy.Report]()},
		schema.Chapter{Title: "Figures", Text: "Figures of one output.", Type: reflect.TypeFor[accuracy.StoredFigures]()},
	)
	if err != nil {
		t.Error(err)
	}
	golden.Check(t, filepath.Join("..", "..", "..", "docs", "reference", "accuracy-fields.md"), reference.Generated+string(page))
}
