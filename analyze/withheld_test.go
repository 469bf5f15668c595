package analyze_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/search"
)

// Two configurations run alone and beside others that take a fifth. That costs throughput 1.5 times
// the withheld share. A configuration with one thread loses nothing to others on the second core.
func TestWithheldIsSummedUp(t *testing.T) {
	t.Parallel()
	b := analyzetest.New(t, strings.ReplaceAll(analyzetest.Profile, "grid", "guided"))
	slow := math.Pow(0.8, 1.5)
	b.Given(search.Candidate{}, 4, 100, 10*time.Millisecond).Given(search.Candidate{}, 4, 100*slow, 10*time.Millisecond).Beside(0.2)
	b.Given(analyzetest.Candidate(2, 2, 8), 4, 200, 10*time.Millisecond).Given(analyzetest.Candidate(2, 2, 8), 4, 200*slow, 10*time.Millisecond).Beside(0.2)
	b.Given(analyzetest.Candidate(1, 1, 8), 4, 90, 10*time.Millisecond).Beside(0.2)
	w := mustAnalyze(t, b, analyze.Options{}).Withheld
	// Two of five windows lost a fifth.
	if math.Abs(w.Mean-0.08) > 1e-9 || math.Abs(w.Most-0.2) > 1e-9 || math.Abs(w.Slope+1.5) > 0.01 {
		t.Errorf("%+v, want 0.08, 0.2 at most and a slope of -1.5", w)
	}
	const want = "Other processes took 8 % of the CPU time on average (up to 20 %); figures are corrected to the average."
	if got := w.Text(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Nothing is reported if others took nothing.
func TestWithheldOfQuietCampaigns(t *testing.T) {
	t.Parallel()
	b := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4)
	if w := mustAnalyze(t, b, analyze.Options{}).Withheld; w.Mean != 0 || w.Slope != 0 || w.Text() != "" {
		t.Errorf("%+v: %q", w, w.Text())
	}
}
