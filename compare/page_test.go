package compare

import (
	"reflect"
	"testing"

	"tuner/internal/schema"
	"tuner/measure"
	"tuner/spec/reference/referencetest"
)

// The committed page of the JSON form is generated from its types.
func TestPageIsGenerated(t *testing.T) {
	t.Parallel()
	referencetest.CheckFields(t, "compare-fields.md", schema.Options{
		Title: "tuner compare: fields of its JSON",
		Description: "`tuner compare A B --format json` writes this. [Compare runs](../how-to/compare.md) explains the figures.\n" +
			"Times are seconds, sizes bytes, rates per second, changes shares. Optional fields are left out where\n" +
			"they do not apply. Other fields may be added within a format.",
		Types: map[reflect.Type]string{
			reflect.TypeFor[measure.Metric](): "[metric](metrics.md)",
			reflect.TypeFor[measure.Mix]():    "list of `model` with its load",
		},
	},
		schema.Chapter{Title: "Comparison", Text: "The whole document.", Type: reflect.TypeFor[Comparison]()},
		schema.Chapter{Title: "Pair", Text: "The first run against another.", Type: reflect.TypeFor[Pair]()},
	)
}
