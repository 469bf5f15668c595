package analyze_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/search"
	"tuner/spec"
)

// several is a campaign whose best configuration depends on the load. One instance on both cores is
// faster with few requests, two instances with many.
func several(t *testing.T) *analyzetest.Builder {
	return analyzetest.New(t, analyzetest.Profile).
		Measure(search.Candidate{}, 2, 4, 8, 16, 2, 4, 8, 16).
		Measure(analyzetest.Candidate(2, 1, 16), 8, 16, 8, 16).
		Measure(analyzetest.Candidate(1, 2, 16), 2, 4, 16, 2, 4, 16).
		Curve(analyzetest.Candidate(2, 1, 2), 2)
}

func TestComparedAtALoad(t *testing.T) {
	t.Parallel()
	at := func(n int) spec.At { return spec.At{Load: measure.Load{Concurrency: n}} }
	r := mustAnalyze(t, several(t), analyze.Options{At: at(4)})
	// One instance with batches of 4 on two threads does 4 · 2^0.7 / 14 ms = 464/s. The default,
	// two instances that share the cores, does 339.
	if diff := cmp.Diff([]string{"minilm_config_1", "minilm_config_default", "minilm_config_0", "minilm_config_2"}, names(r.Configs)); diff != "" {
		t.Errorf("ranking (-want +got):\n%s", diff)
	}
	for _, c := range r.Configs[:2] {
		if c.Best == nil || c.Best.Load.Concurrency != 4 || c.Rank == 0 || c.Gain == nil {
			t.Errorf("%s: %+v", c.Name, c.Best)
		}
	}
	if c := r.Configs[2]; c.Best != nil || c.Rank != 0 || c.Gain != nil || len(c.Points) != 2 {
		t.Errorf("%s was not measured there: best %v, rank %d, %d points", c.Name, c.Best, c.Rank, len(c.Points))
	}
	for _, c := range r.Configs {
		for _, p := range c.Points {
			if len(p.Chances) != 1 || math.IsInf(p.Score.Value, 0) {
				t.Errorf("%s at %v has the score %v and %d probabilities", c.Name, p.Load, p.Score.Value, len(p.Chances))
			}
		}
	}
	if r.At == nil || r.ByBestLoad() {
		t.Error("the result does not say that it is of one load")
	}
	for _, f := range r.Fronts {
		for _, p := range f.Points {
			if p.Load.Concurrency != 4 {
				t.Errorf("a front has %s at %v", p.Name, p.Load)
			}
		}
	}
	lowest := mustAnalyze(t, several(t), analyze.Options{At: spec.At{Lowest: true}})
	if lowest.At == nil || lowest.At.Concurrency != 2 {
		t.Errorf("the lowest load is %v, want that of the default, 2", lowest.At)
	}
	_, err := analyze.Analyze(several(t).Campaign(), analyze.Options{At: at(7)})
	want := "nothing was measured at concurrency=7; figures exist at concurrency=2, concurrency=4, concurrency=8, concurrency=16;"
	if load := new(analyze.LoadError); !errors.As(err, &load) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	failed := analyzetest.New(t, analyzetest.Profile).Fail(search.Candidate{}, 4, measure.StageLoad, "invalid graph")
	if r := mustAnalyze(t, failed, analyze.Options{At: at(4)}); r.At != nil || len(r.Failures) != 1 {
		t.Errorf("where every trial failed: at %v, failures %v", r.At, r.Failures)
	}
}

func TestBestAtEachLoad(t *testing.T) {
	t.Parallel()
	r := mustAnalyze(t, several(t), analyze.Options{})
	type line struct {
		Concurrency, Measured int
		Best                  string
		HasBase, HasGain      bool
	}
	var got []line
	for _, l := range r.Loads {
		got = append(got, line{l.Load.Concurrency, l.Measured, l.Best.Name, l.Base != nil, l.Best.Gain != nil})
		if l.Best.Best.Load != l.Load || len(l.Best.Points) != 1 {
			t.Errorf("at %v the best is of %v", l.Load, l.Best.Best.Load)
		}
	}
	// Two instances with batches of 2 at concurrency 2 were measured for the load curves only. They
	// are outside the space, so they never win.
	want := []line{
		{2, 2, "minilm_config_1", true, true},
		{4, 2, "minilm_config_1", true, true},
		{8, 2, "minilm_config_0", true, true},
		{16, 3, "minilm_config_0", true, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	tight := 0.001
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
		Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: &tight}}}
	for _, l := range mustAnalyze(t, several(t), analyze.Options{Goal: &goal}).Loads {
		if l.Best != nil || l.Base == nil {
			t.Errorf("at %v nothing keeps the limit: best %v, base %v", l.Load, l.Best, l.Base)
		}
	}
}

// Online and offline are two views of one journal, with different goals, loads and answers.
func TestModesOfOneJournal(t *testing.T) {
	t.Parallel()
	c := several(t).Campaign()
	check := func(text string, want string, concurrency int) {
		t.Helper()
		a, err := spec.ParseAnalyze("a.yaml", []byte("input: x\n"+text), []string{"table"})
		if err != nil {
			t.Fatal(err)
		}
		goal, err := a.Goal(c.Profile.Goal, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := analyze.Analyze(c, analyze.Options{Goal: &goal, At: a.ComparedAt()})
		if err != nil {
			t.Fatal(err)
		}
		if best, ok := r.Winner(); !ok || best.Name != want || best.Best.Load.Concurrency != concurrency {
			t.Errorf("%s: the best is %s at %v, want %s at concurrency %d", text, best.Name, best.Best, want, concurrency)
		}
	}
	check("", "minilm_config_0", 16)
	check("mode: online", "minilm_config_1", 2)
	check("mode: offline", "minilm_config_0", 16)
}

// A gain at a load compares with the default at that load. Without a measurement of the default
// there, or if it misses a limit, the gain is missing. This holds even if the default's best load
// has a gain.
func TestGainAtALoad(t *testing.T) {
	t.Parallel()
	limit := 0.055 // s; with 24 requests in flight the default's mean is 62 ms, that of two one-thread instances 39 ms
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
		Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: &limit}}}
	all := mustAnalyze(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8, 24).Measure(analyzetest.Candidate(2, 1, 16), 8, 16, 24),
		analyze.Options{Goal: &goal})
	best, ok := all.Winner()
	if !ok || best.Gain == nil {
		t.Fatalf("%s has no gain: the test shows nothing", best.Name)
	}
	kept, _ := all.Only([]string{best.Name})
	for name, r := range map[string]analyze.Result{"all": all, "named": kept} {
		gains := map[int]bool{}
		for _, l := range r.Loads {
			gains[l.Load.Concurrency] = l.Best != nil && l.Best.Gain != nil
		}
		if diff := cmp.Diff(map[int]bool{8: true, 16: false, 24: false}, gains); diff != "" {
			t.Errorf("%s: loads with a gain (-want +got):\n%s", name, diff)
		}
	}
}

// The ranking compares means of throughputs, even if throughput has another weight in the
// objective. Each configuration reports how many loads its mean has.
func TestMeanOfThroughputs(t *testing.T) {
	t.Parallel()
	analyzed := func(weight float64) analyze.Result {
		goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: weight}}}}
		return mustAnalyze(t, several(t), analyze.Options{Goal: &goal, Rank: spec.RankTop3Mean})
	}
	one, ten := analyzed(1), analyzed(10)
	if diff := cmp.Diff(names(one.Configs), names(ten.Configs)); diff != "" {
		t.Errorf("ranking (-weight 1 +weight 10):\n%s", diff)
	}
	for i, c := range one.Configs {
		if diff := cmp.Diff(c.Gain, ten.Configs[i].Gain); diff != "" {
			t.Errorf("gain of %s (-weight 1 +weight 10):\n%s", c.Name, diff)
		}
		// The default was measured at four loads, minilm_config_1 at three, and the others at
		// fewer.
		want := 0
		if c.Candidate.IsDefault() || c.Name == "minilm_config_1" {
			want = 3
		}
		if c.MeanOf != want {
			t.Errorf("%s has the mean of %d loads, want %d", c.Name, c.MeanOf, want)
		}
	}
	if c, _ := one.Config("minilm_config_1"); c.Gain == nil || c.Gain.Value == 1 {
		t.Errorf("minilm_config_1 has the gain %v: the test shows nothing", c.Gain)
	}
	fewer := mustAnalyze(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4, 8).Measure(analyzetest.Candidate(2, 1, 16), 16), analyze.Options{Rank: spec.RankTop3Mean})
	if n := fewer.Default().MeanOf; n != 2 {
		t.Errorf("where two loads are the most, a mean is of %d", n)
	}
}
