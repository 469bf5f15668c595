package output

import (
	"reflect"
	"testing"

	"tuner/gate"
	"tuner/internal/schema"
	"tuner/measure"
	"tuner/spec/reference/referencetest"
)

// The committed page of a gate's files is generated from their types.
func TestPageIsGenerated(t *testing.T) {
	t.Parallel()
	referencetest.CheckFields(t, "gate-results-fields.md", schema.Options{
		Title:       "tuner gate: fields of its files",
		Description: "`tuner gate` writes these files. [gate.yaml](gate.md#results) explains them. Times are seconds, sizes\nbytes, changes and margins shares.",
		Types: map[reflect.Type]string{
			reflect.TypeFor[measure.Metric](): "[metric](metrics.md)",
			reflect.TypeFor[measure.Mix]():    "list of `model` with its load",
		},
	},
		schema.Chapter{Title: "gate.json", Text: "All that a gate found.", Type: reflect.TypeFor[document]()},
		schema.Chapter{Title: "Saved baseline", Text: "`--save-baseline` writes this file.", Type: reflect.TypeFor[gate.Saved]()},
		schema.Chapter{Title: "Line of the history", Text: "`history.jsonl` has a line for each gate.", Type: reflect.TypeFor[gate.Record]()},
		schema.Chapter{Title: "Data of trend.html", Text: "trend.html carries this object.", Type: reflect.TypeFor[trendData]()},
	)
}
