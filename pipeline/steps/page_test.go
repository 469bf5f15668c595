package steps

import (
	"reflect"
	"testing"

	"tuner/internal/schema"
	"tuner/spec/reference/referencetest"
)

// The committed page of steps.json is generated from its types.
func TestPageIsGenerated(t *testing.T) {
	t.Parallel()
	referencetest.CheckFields(t, "run-fields.md", schema.Options{
		Title: "steps.json: fields",
		Description: "`tuner run` records its steps in `steps.json` in the output folder. [tuner run](run.md) explains the\n" +
			"steps, and how a later run continues.",
	},
		schema.Chapter{Title: "Record", Text: "The whole file.", Type: reflect.TypeFor[document]()},
		schema.Chapter{Title: "Step", Type: reflect.TypeFor[record]()},
	)
}
