package output

import (
	"path/filepath"
	"reflect"
	"testing"

	"tuner/internal/golden"
	"tuner/internal/schema"
	"tuner/measure"
	"tuner/spec/reference"
)

// The committed page of the JSON report is generated from its types.
func TestPageIsGenerated(t *testing.T) {
	t.Parallel()
	page, err := schema.Tables(schema.Options{
		Title: "tuner perf: fields of the JSON report",
		Description: "`tuner perf --output json` writes this document. [tuner perf](perf.md#json) explains it.\n" +
			"Times are seconds, sizes bytes, shares 0 to 1, instants RFC 3339. Optional fields are left out\n" +
			"while they are not known. Other fields may be added within a format.",
		Module: "../..", ModulePath: "tuner",
		Types: map[reflect.Type]string{reflect.TypeFor[measure.Histogram](): "text"},
	},
		schema.Chapter{Title: "Report", Text: "The whole document.", Type: reflect.TypeFor[document]()},
		schema.Chapter{Title: "Level", Text: "The figures of one level.", Type: reflect.TypeFor[jsonLevel]()},
	)
	if err != nil {
		t.Error(err)
	}
	golden.Check(t, filepath.Join("..", "..", "docs", "reference", "perf-fields.md"), reference.Generated+string(page))
}
