package conversion

import (
	"path/filepath"
	"reflect"
	"testing"

	"tuner/internal/golden"
	"tuner/internal/schema"
	"tuner/model/precision/accuracy"
	"tuner/spec/reference"
)

// The committed page of the JSON result is generated from its types.
func TestPageIsGenerated(t *testing.T) {
	t.Parallel()
	page, err := schema.Tables(schema.Options{
		Title: "tuner convert: fields of the JSON result",
		Description: "`tuner convert --output json` prints this object. [tuner convert](convert.md#output) explains how\n" +
			"variants are made and judged.",
		Module: "../../..", ModulePath: "tuner",
		Types: map[reflect.Type]string{reflect.TypeFor[accuracy.Report](): "[comparison](accuracy-fields.md#comparison)"},
	},
		schema.Chapter{Title: "Result", Text: "The whole object.", Type: reflect.TypeFor[Document]()},
	)
	if err != nil {
		t.Error(err)
	}
	golden.Check(t, filepath.Join("..", "..", "..", "docs", "reference", "convert-fields.md"), reference.Generated+string(page))
}
