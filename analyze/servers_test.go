package analyze_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/journal"
	"tuner/search"
)

// The finals' server is half as fast as the search's: a configuration that only the search saw has better figures than the finalist, which
// say nothing against it.
func TestFiguresOfTwoServersAreNotCompared(t *testing.T) {
	t.Parallel()
	finalist, other := analyzetest.Candidate(2, 1, 16), analyzetest.Candidate(2, 1, 8)
	campaign := analyzetest.New(t, analyzetest.Profile).
		Measure(search.Candidate{}, 4, 8).Measure(other, 16).Measure(finalist, 16).
		Confirm(finalist, 16).Confirm(search.Candidate{}, 8).Confirm(search.Candidate{}, 8).Confirm(finalist, 16).
		End("the space is exhausted", false).Campaign()
	for _, e := range campaign.Events {
		if e.Trial.Phase == search.PhaseFinal {
			for i := range e.Measurement.Windows {
				e.Measurement.Windows[i].Duration *= 2
			}
		}
	}
	analyzed := func(c analyze.Campaign) analyze.Result {
		t.Helper()
		r, err := analyze.Analyze(c, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if best, ok := analyzed(campaign).Winner(); !ok || best.Candidate.Key() != other.Key() {
		t.Fatalf("on one server %v wins, want %v: else the test shows nothing", best.Candidate, other)
	}
	campaign.Header.Finals = &journal.ServerInfo{Mode: "remote", Where: "gpu7:8001", Name: "triton", Version: "2.51.0"}
	r := analyzed(campaign)
	if diff := cmp.Diff([]string{"minilm_config_1", "minilm_config_default", "minilm_config_0"}, names(r.Configs)); diff != "" {
		t.Errorf("ranking (-want +got):\n%s", diff)
	}
	best, last := r.Configs[0], r.Configs[2]
	// Both were measured on the finals' server: 615/s against 387/s by the formula, and half of each there.
	if best.Gain == nil || best.Gain.Value < 1.5 || best.Gain.Value > 1.7 || last.Gain != nil || last.Rank != 3 {
		t.Errorf("gains are %v and %v, the last has rank %d", best.Gain, last.Gain, last.Rank)
	}
	if base := r.Default().Best; !base.Confirmed {
		t.Errorf("the default is ranked by %+v, want a point of the finals", base.Load)
	}
	if on, off := r.Server(*best.Best), r.Server(*last.Best); on != "triton 2.51.0 at gpu7:8001" || off != journal.BundledEngine {
		t.Errorf("measured on %q and %q", on, off)
	}
}

// Of the search's server nothing may be left but what was measured for the load curves; and what is left of it may be tied, the default, to
// which equals are compared, being among the finalists.
func TestWhatTheFinalsServerLeaves(t *testing.T) {
	t.Parallel()
	finalist := analyzetest.Candidate(2, 1, 16)
	check := func(name string, b *analyzetest.Builder, want ...string) {
		t.Helper()
		campaign := b.Confirm(finalist, 16).Confirm(search.Candidate{}, 8).End("the space is exhausted", false).Campaign()
		campaign.Header.Finals = &journal.ServerInfo{Mode: "remote", Where: "gpu7:8001", Name: "triton", Version: "2.51.0"}
		r, err := analyze.Analyze(campaign, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, names(r.Configs)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	begin := func() *analyzetest.Builder {
		return analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8).Measure(finalist, 16)
	}
	check("curves alone", begin().Curve(search.NewCandidate(search.Setting{Knob: search.KnobIntraOpThreads, Value: "1"}), 8),
		"minilm_config_0", "minilm_config_default", "minilm_config_1")
	// Three instances on one thread each, with the same figures; batches of 4 are the default's.
	check("equals", begin().Given(analyzetest.Candidate(3, 1, 8), 8, 300, 20*time.Millisecond).Given(analyzetest.Candidate(3, 1, 4), 8, 300, 20*time.Millisecond),
		"minilm_config_0", "minilm_config_default", "minilm_config_2", "minilm_config_1")
}
