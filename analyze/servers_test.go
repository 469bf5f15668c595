package analyze_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
)

// elsewhere is another server, on which finals run.
var elsewhere = &journal.ServerInfo{Mode: "remote", Where: "gpu7:8001", Name: "triton", Version: "2.51.0"}

// halveFinals makes the finals' server half as fast as the search's.
func halveFinals(c analyze.Campaign) {
	for _, e := range c.Events {
		if e.Trial.Phase == search.PhaseFinal {
			for i := range e.Measurement.Windows {
				e.Measurement.Windows[i].Duration *= 2
			}
		}
	}
}

// The finals' server is half as fast as the search's. A configuration that only the search measured
// has better figures than the finalist. That is no evidence against the finalist.
func TestFiguresOfTwoServersAreNotCompared(t *testing.T) {
	t.Parallel()
	finalist, other := analyzetest.Candidate(2, 1, 16), analyzetest.Candidate(2, 1, 8)
	campaign := analyzetest.New(t, analyzetest.Profile).
		Measure(search.Candidate{}, 4, 8).Measure(other, 16).Measure(finalist, 16).
		Finals(finalist, 16).
		End("the space is exhausted", false).Campaign()
	halveFinals(campaign)
	analyzed := func(c analyze.Campaign) analyze.Result {
		t.Helper()
		r, err := analyze.Analyze(c, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if best, ok := analyzed(campaign).Winner(); !ok || best.Candidate.Key() == finalist.Key() {
		t.Fatalf("on one server %v wins: the test shows nothing", best.Candidate)
	}
	campaign.Header.Finals = elsewhere
	r := analyzed(campaign)
	if diff := cmp.Diff([]string{"minilm_config_1", "minilm_config_default", "minilm_config_0"}, names(r.Configs)); diff != "" {
		t.Errorf("ranking (-want +got):\n%s", diff)
	}
	best, last := r.Configs[0], r.Configs[2]
	// Both were measured on the finals' server. The formula gives 615/s against 387/s, and half of
	// each there.
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

// The search's server may have only measurements for the load curves. Several configurations of it
// are ordered by their own figures, whatever the finals' server measured.
func TestWhatTheFinalsServerLeaves(t *testing.T) {
	t.Parallel()
	finalist := analyzetest.Candidate(2, 1, 16)
	check := func(name string, b *analyzetest.Builder, want ...string) {
		t.Helper()
		campaign := b.Confirm(finalist, 16).Confirm(search.Candidate{}, 8).End("the space is exhausted", false).Campaign()
		campaign.Header.Finals = elsewhere
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
	check("two", begin().Given(analyzetest.Candidate(3, 1, 8), 8, 900, 9*time.Millisecond).Given(analyzetest.Candidate(3, 1, 4), 8, 1200, 7*time.Millisecond),
		"minilm_config_0", "minilm_config_default", "minilm_config_2", "minilm_config_1")
}

// The best at each load, the Pareto sets and the mean of the highest throughputs use one server:
// the best one's. The search's server is twice as fast and measured more loads.
func TestViewsAreOfOneServer(t *testing.T) {
	t.Parallel()
	finalist := analyzetest.Candidate(2, 1, 16)
	campaign := analyzetest.New(t, analyzetest.Profile).
		Measure(search.Candidate{}, 4, 8, 16).Measure(analyzetest.Candidate(2, 1, 8), 4, 8, 16).Measure(finalist, 4, 8, 16).
		Finals(finalist, 16).
		End("the space is exhausted", false).Campaign()
	halveFinals(campaign)
	campaign.Header.Finals = elsewhere
	analyzed := func(o analyze.Options) analyze.Result {
		t.Helper()
		r, err := analyze.Analyze(campaign, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	all := analyzed(analyze.Options{})
	kept, _ := all.Only([]string{"minilm_config_0", "minilm_config_1"})
	for name, r := range map[string]analyze.Result{"all": all, "named": kept} {
		var best []string
		for _, l := range r.Loads {
			best = append(best, fmt.Sprintf("%s of %d at %v", l.Best.Name, l.Measured, l.Load))
		}
		want := []string{"minilm_config_default of 1 at concurrency 8", "minilm_config_1 of 1 at concurrency 16"}
		if diff := cmp.Diff(want, best); diff != "" {
			t.Errorf("%s, the best at each load (-want +got):\n%s", name, diff)
		}
		finals := map[string]int{"minilm_config_default": 8, "minilm_config_1": 16}
		for _, f := range r.Fronts {
			for _, p := range f.Points {
				if finals[p.Name] != p.Load.Concurrency {
					t.Errorf("%s: %s at %v is in the Pareto set of %v", name, p.Name, p.Load, f.Metrics)
				}
			}
		}
	}
	r := analyzed(analyze.Options{Rank: spec.RankTop3Mean})
	best, ok := r.Winner()
	if want := math.Log(best.Best.Values[measure.Throughput].Value); !ok || best.Name != "minilm_config_1" || math.Abs(best.Score.Value-want) > 1e-9 {
		t.Errorf("by the mean of its loads %s is the best with %v, want minilm_config_1 with %v, that of its only load", best.Name, best.Score.Value, want)
	}
	if last := r.Configs[2]; math.IsInf(last.Score.Value, 0) {
		t.Errorf("%s has no mean of its three loads", last.Name)
	}
}

// The best comes from the finals' server and its first stage from the search's. Then the gains of
// the stages are not reported.
func TestStageOfAnotherServer(t *testing.T) {
	t.Parallel()
	finalist := analyzetest.Candidate(2, 1, 16)
	stage := search.NewCandidate(search.Setting{Knob: search.KnobIntraOpThreads, Value: "1"})
	check := func(name string, finals *journal.ServerInfo, withStage, isKnown, isElsewhere bool) {
		t.Helper()
		b := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8).Measure(finalist, 16).Confirm(finalist, 16).Confirm(search.Candidate{}, 8)
		if withStage {
			b.Curve(stage, 8)
		}
		campaign := b.End("the space is exhausted", false).Campaign()
		campaign.Header.Finals = finals
		r, err := analyze.Analyze(campaign, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if (r.FirstStage != "") != isKnown || r.StageElsewhere != isElsewhere {
			t.Errorf("%s: the first stage is %q, elsewhere: %t; want it known: %t, elsewhere: %t", name, r.FirstStage, r.StageElsewhere, isKnown, isElsewhere)
		}
	}
	check("one server", nil, true, true, false)
	check("two servers", elsewhere, true, false, true)
	check("not measured", elsewhere, false, false, false)
}
