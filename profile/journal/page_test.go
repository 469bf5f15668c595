package journal_test

import (
	"reflect"
	"testing"

	"tuner/internal/schema"
	"tuner/measure"
	"tuner/model/precision/accuracy"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec/reference/referencetest"
)

// The committed page of the records is generated from their types.
func TestPageIsGenerated(t *testing.T) {
	t.Parallel()
	referencetest.CheckFields(t, "journal-fields.md", schema.Options{
		Title: "journal.jsonl: fields",
		Description: "[journal.jsonl](journal.md) explains the journal, its checksums and its formats. Fields of `data`\n" +
			"follow by the kind of the record. Durations are nanoseconds, sizes bytes, shares 0 to 1. Histograms\n" +
			"are HdrHistogram's compressed encoding (V2) in base64.",
		Types: map[reflect.Type]string{
			reflect.TypeFor[measure.Metric]():    "[metric](metrics.md)",
			reflect.TypeFor[measure.Histogram](): "histogram",
			reflect.TypeFor[search.Candidate]():  "list of `knob` and `value`",
			reflect.TypeFor[measure.Mix]():       "list of `model` with its load",
			reflect.TypeFor[accuracy.Report]():   "[comparison](accuracy-fields.md#comparison)",
		},
	},
		schema.Chapter{Title: "A record", Type: reflect.TypeFor[journal.Record]()},
		schema.Chapter{Title: "Kind header", Type: reflect.TypeFor[journal.Header]()},
		schema.Chapter{Title: "Kind earlier", Type: reflect.TypeFor[search.Earlier]()},
		schema.Chapter{Title: "Kind session", Type: reflect.TypeFor[journal.Session]()},
		schema.Chapter{Title: "Kind trial", Type: reflect.TypeFor[search.Event]()},
		schema.Chapter{Title: "Kind end", Type: reflect.TypeFor[journal.End]()},
	)
}
