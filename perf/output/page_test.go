package output

import (
	"encoding/json"
	"reflect"
	"testing"

	"tuner/internal/schema"
	"tuner/measure"
	"tuner/spec/reference/referencetest"
)

// The committed page of the JSON report and of the profile export is generated from their types.
func TestPageIsGenerated(t *testing.T) {
	t.Parallel()
	referencetest.CheckFields(t, "perf-fields.md", schema.Options{
		Title: "tuner perf: fields of the JSON report and of the profile export",
		Description: "`tuner perf --format json` writes the report, `--profile-export-file` the profile export.\n" +
			"[tuner perf](perf.md#json) explains both. In the report times are seconds, sizes bytes,\n" +
			"shares 0 to 1, instants RFC 3339. Optional fields are left out while they are not known. Other fields\n" +
			"may be added within a format.",
		Types: map[reflect.Type]string{
			reflect.TypeFor[measure.Histogram](): "text",
			reflect.TypeFor[json.Number]():       "number",
			reflect.TypeFor[exportOutput]():      "empty object",
		},
	},
		schema.Chapter{Title: "Report", Text: "The whole report.", Type: reflect.TypeFor[document]()},
		schema.Chapter{Title: "Level", Text: "The figures of one level.", Type: reflect.TypeFor[jsonLevel]()},
		schema.Chapter{Title: "Profile export", Text: "perf_analyzer's document.", Type: reflect.TypeFor[exportDocument]()},
	)
}
