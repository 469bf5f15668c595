package report_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/report/html"
	resultjson "tuner/report/json"
	"tuner/report/markdown"
	"tuner/report/reporttest"
	"tuner/report/text"
	"tuner/search"
)

// A default that misses the limit at the measured loads, with lower loads left, is said to do so at
// these loads alone. All reports say it in the same words.
func TestDefaultMissesTheLimitAtTheMeasuredLoads(t *testing.T) {
	t.Parallel()
	profile := strings.NewReplacer("intra_op_threads: [1, 2]", "intra_op_threads: [1]", "instance_count: [1, 2]", "instance_count: [1]",
		"max_batch_size: [4, 8, 16]", "max_batch_size: [4]", "min: 1, max: 64", "min: 4, max: 8").Replace(analyzetest.Profile)
	best := analyzetest.Candidate(1, 1, 4)
	c := analyzetest.New(t, profile).
		Given(search.Candidate{}, 8, 145, 55300*time.Microsecond).
		Measure(best, 4, 8).
		Confirm(best, 4).Confirm(best, 4).
		End("the space is exhausted", false)
	r := reporttest.Ranked(t, c, analyze.Options{})
	want := ": the best within p99 ≤ 50 ms, which the default does not keep at the measured loads, from concurrency 8 on."
	for name, write := range map[string]func(io.Writer, analyze.Result) error{
		"table": text.WriteTable, "json": resultjson.Write,
		"markdown": func(w io.Writer, r analyze.Result) error { return markdown.Write(w, r, true) },
		"html":     func(w io.Writer, r analyze.Result) error { return html.Write(w, r, true) },
	} {
		var b bytes.Buffer
		if err := write(&b, r); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(got, want) {
			t.Errorf("%s does not say %q", name, want)
		}
	}
}
