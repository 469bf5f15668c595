package report_test

import (
	"bytes"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/report/figures"
	resultjson "tuner/report/json"
	"tuner/report/markdown"
	"tuner/report/reporttest"
	"tuner/report/text"
	"tuner/search"
)

// Every report has the verdict's sentences and the number of service trials.
func TestClaimsAndServiceTrials(t *testing.T) {
	t.Parallel()
	best := analyzetest.Candidate(2, 1, 16)
	r := reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8).Measure(best, 16).Service(best, 1).Service(best, 2).
		End("the search has converged", false), analyze.Options{})
	claim := r.Ending.Statement[len(r.Ending.Statement)-1]
	claim = claim[strings.Index(claim, ": ")+2:]
	if got, want := figures.Effort(r), "2 configurations, 2 measurements (4 windows) and 2 service curves in 11s"; got != want {
		t.Errorf("effort is %q, want %q", got, want)
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"table":    func(b *bytes.Buffer) error { return text.WriteTable(b, r) },
		"markdown": func(b *bytes.Buffer) error { return markdown.Write(b, r, false) },
		"json":     func(b *bytes.Buffer) error { return resultjson.Write(b, r) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(strings.Fields(unescaped(b.String())), " "); !strings.Contains(text, claim) {
			t.Errorf("%s does not say what is claimed:\n%s", name, b.String())
		}
	}
}
