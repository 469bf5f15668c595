package verify

import (
	"reflect"
	"testing"

	"tuner/export"
	"tuner/internal/schema"
	"tuner/spec/reference/referencetest"
)

// The committed page of export.json, and of what `tuner export` and `tuner export verify` print, is
// generated from their types.
func TestPageIsGenerated(t *testing.T) {
	t.Parallel()
	referencetest.CheckFields(t, "export-fields.md", schema.Options{
		Title: "tuner export: fields of its JSON",
		Description: "[tuner export](export.md) explains the targets, and what follows from the measurement. The format of\n" +
			"export.json grows when a field changes its meaning or disappears. Other fields may be added within a\n" +
			"format.",
	},
		schema.Chapter{Title: "export.json", Text: "Each export has this file.", Type: reflect.TypeFor[export.Manifest]()},
		schema.Chapter{Title: "Output of tuner export", Text: "`tuner export --format json` prints this object.", Type: reflect.TypeFor[export.Summary]()},
		schema.Chapter{Title: "Output of tuner export verify", Text: "`tuner export verify --format json` prints this object.", Type: reflect.TypeFor[Summary]()},
	)
}
