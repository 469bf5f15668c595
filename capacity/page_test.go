package capacity

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
	referencetest.CheckFields(t, "plan-fields.md", schema.Options{
		Title: "tuner plan: fields of its JSON",
		Description: "`tuner plan RESULT… --traffic TRAFFIC --format json` writes this. [Plan replicas for a traffic](../how-to/plan.md)\n" +
			"explains the figures. Times are seconds, rates requests per second, shares 0 to 1. Optional fields are\n" +
			"left out where they do not apply. Other fields may be added within a format.",
		Types: map[reflect.Type]string{reflect.TypeFor[measure.Load](): "[load](result-fields.md#load)"},
	},
		schema.Chapter{Title: "Plan", Text: "The whole document.", Type: reflect.TypeFor[Plan]()},
	)
}
