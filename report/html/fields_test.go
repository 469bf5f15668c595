package html

import (
	"path/filepath"
	"reflect"
	"testing"

	"tuner/internal/golden"
	"tuner/internal/schema"
	"tuner/measure"
	"tuner/spec/reference"
)

// The committed page of the page's data is generated from its types.
func TestFieldsPageIsGenerated(t *testing.T) {
	t.Parallel()
	page, err := schema.Tables(schema.Options{
		Title: "report.html: fields of its data",
		Description: "report.html carries this JSON object ([more](report.md#the-data-in-the-page)). Values are in base\n" +
			"units (infer/s, seconds, bytes), with five significant digits; `null` is unknown. Loads, lines, flags,\n" +
			"reasons, phases, chances, configurations, answers, roles, choices and standings are named by their\n" +
			"indices in these lists, counted from 0.",
		Module: "../..", ModulePath: "tuner",
		Types: map[reflect.Type]string{
			reflect.TypeFor[measure.Metric](): "[metric](metrics.md)",
			reflect.TypeFor[numerals]():       "list: number",
			reflect.TypeFor[any]():            "value",
		},
	},
		schema.Chapter{Title: "Data", Text: "The whole object.", Type: reflect.TypeFor[document]()},
	)
	if err != nil {
		t.Error(err)
	}
	golden.Check(t, filepath.Join("..", "..", "docs", "reference", "report-data-fields.md"), reference.Generated+string(page))
}
