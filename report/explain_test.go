package report_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/internal/golden"
	resultjson "tuner/report/json"
	"tuner/report/markdown"
	"tuner/report/reporttest"
	"tuner/report/text"
	"tuner/search"
)

func TestExplanations(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]analyze.Result{
		"found.why.txt":      reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}),
		"infeasible.why.txt": reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Goal: reporttest.Tight()}),
		"predicted.why.txt":  reporttest.Predicted(t),
		"unmeasured.why.txt": {},
	} {
		var b bytes.Buffer
		if err := text.WriteExplanation(&b, r); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		golden.Check(t, filepath.Join("testdata", name), b.Bytes())
		for line := range strings.Lines(b.String()) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 120 {
				t.Errorf("%s: line has %d columns: %s", name, n, line)
			}
		}
		if err := text.WriteExplanation(reporttest.Failing{}, r); !errors.Is(err, reporttest.ErrFull) {
			t.Errorf("%s: error is %v, want %v", name, err, reporttest.ErrFull)
		}
	}
}

// A result without the campaign's best configuration has no explanation, and no figures of one.
func TestReportWithoutTheBest(t *testing.T) {
	t.Parallel()
	r, _ := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}).Only([]string{"minilm_config_1"})
	const want = "There is nothing to explain: the campaign's best configuration is not among the reported ones.\n"
	if got := reporttest.Written(t, r, text.WriteExplanation); got != want {
		t.Errorf("the explanation is %q, want %q", got, want)
	}
	summary := func(w io.Writer, r analyze.Result) error { return markdown.Write(w, r, false) }
	if text := reporttest.Written(t, r, summary) + reporttest.Written(t, r, resultjson.Write); strings.Contains(text, "## Why this configuration") || strings.Contains(text, `"explanation"`) {
		t.Error("another configuration is explained with the figures of the best")
	}
}

// A configuration that looked better and failed on a fresh launch is not the answer.
func TestFailedFinalsAreSaid(t *testing.T) {
	t.Parallel()
	failing, other := analyzetest.Candidate(2, 1, 16), analyzetest.Candidate(2, 1, 4)
	r := reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 64).Measure(failing, 16).Measure(other, 8).
		FailFinal(failing, 16).Confirm(other, 8), analyze.Options{})
	if best, ok := r.Winner(); !ok || best.Candidate.Key() != other.Key() {
		t.Errorf("the best is %s, whose fresh process failed", best.Candidate.Describe())
	}
}
