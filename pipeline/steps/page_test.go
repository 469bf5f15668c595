package steps

import (
	"path/filepath"
	"reflect"
	"testing"

	"tuner/internal/golden"
	"tuner/internal/schema"
	"tuner/spec/reference"
)

// The committed page of steps.json is generated from its types.
func TestPageIsGenerated(t *testing.T) {
	t.Parallel()
	page, err := schema.Tables(schema.Options{
		Title: "steps.json: fields",
		Description: "`tuner run` records its steps in `steps.json` in the output folder. [tuner run](run.md) explains the\n" +
			"steps, and how a later run continues.",
		Module: "../..", ModulePath: "tuner",
	},
		schema.Chapter{Title: "Record", Text: "The whole file.", Type: reflect.TypeFor[document]()},
		schema.Chapter{Title: "Step", Type: reflect.TypeFor[record]()},
	)
	if err != nil {
		t.Error(err)
	}
	golden.Check(t, filepath.Join("..", "..", "docs", "reference", "run-fields.md"), reference.Generated+string(page))
}
