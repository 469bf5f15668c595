package conversion

import (
	"reflect"
	"testing"

	"tuner/internal/schema"
	"tuner/model/precision/accuracy"
	"tuner/spec/reference/referencetest"
)

// The committed page of the JSON result is generated from its types.
func TestPageIsGenerated(t *testing.T) {
	t.Parallel()
	referencetest.CheckFields(t, "convert-fields.md", schema.Options{
		Title: "tuner convert: fields of the JSON result",
		Description: "`tuner convert --format json` prints this object. [tuner convert](convert.md#output) explains how\n" +
			"variants are made and judged.",
		Types: map[reflect.Type]string{reflect.TypeFor[accuracy.Report](): "[comparison](accuracy-fields.md#comparison)"},
	},
		schema.Chapter{Title: "Result", Text: "The whole object.", Type: reflect.TypeFor[Document]()},
	)
}
