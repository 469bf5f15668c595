package html

import (
	"reflect"
	"testing"

	"tuner/internal/schema"
	"tuner/measure"
	"tuner/spec/reference/referencetest"
)

// The committed page of the page's data is generated from its types.
func TestFieldsPageIsGenerated(t *testing.T) {
	t.Parallel()
	referencetest.CheckFields(t, "report-data-fields.md", schema.Options{
		Title: "report.html: fields of its data",
		Description: "report.html carries this JSON object ([more](report.md#the-data-in-the-page)). Values are in base\n" +
			"units (infer/s, seconds, bytes), with five significant digits; `null` is unknown. Loads, lines, flags,\n" +
			"reasons, phases, chances, configurations, answers, roles, choices and standings are named by their\n" +
			"indices in these lists, counted from 0.",
		Types: map[reflect.Type]string{
			reflect.TypeFor[measure.Metric](): "[metric](metrics.md)",
			reflect.TypeFor[measure.Mix]():    "list of `model` with its load",
			reflect.TypeFor[numerals]():       "list: number",
			reflect.TypeFor[any]():            "value",
		},
	},
		schema.Chapter{Title: "Data", Text: "The whole object.", Type: reflect.TypeFor[document]()},
	)
}
