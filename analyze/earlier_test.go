package analyze_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/profile/journal"
	"tuner/search"
)

// created is the time of the earlier campaign of writeWithEarlier.
var created = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// writeWithEarlier writes the journal of a campaign that learned from an earlier one with three
// trials. It returns the same campaign without the earlier one.
func writeWithEarlier(t *testing.T, dir string) *analyzetest.Builder {
	t.Helper()
	best := analyzetest.Candidate(2, 1, 16)
	first := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4).Measure(best, 8, 16).Campaign()
	second := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4).Measure(analyzetest.Candidate(1, 1, 8), 8)
	j, err := journal.Create(dir, second.Campaign().Header,
		journal.Entry{Kind: journal.KindEarlier, Value: search.Earlier{From: "out/first", Created: created, Same: true, Events: first.Events}})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range second.Campaign().Events {
		if err := j.Append(journal.KindTrial, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return second
}

// Reused trials are counted separately. All other results are the same with and without them.
func TestEarlierCampaignsAreNoFigures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	second := writeWithEarlier(t, dir)
	campaign, err := analyze.Replay(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := analyze.Analyze(campaign, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]analyze.Reused{{From: "out/first", Created: created, Same: true, Trials: 3}}, got.Reused); diff != "" {
		t.Errorf("reused (-want +got):\n%s", diff)
	}
	without := mustAnalyze(t, second, analyze.Options{})
	same := cmp.Options{cmpopts.IgnoreFields(analyze.Result{}, "Reused", "Decide"), cmpopts.IgnoreFields(analyze.Config{}, "Deployed"), cmpopts.EquateEmpty(),
		byValue}
	if diff := cmp.Diff(without, got, same); diff != "" {
		t.Errorf("an earlier campaign changes the result (-without +with):\n%s", diff)
	}
}
