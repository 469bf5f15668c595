package spec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/spec/goals"
)

func TestParseAt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]At{
		"best":               {},
		"lowest":             {Lowest: true},
		"each":               {Each: true},
		"concurrency=8":      {Load: measure.Load{Concurrency: 8}},
		"request_rate=200":   {Load: measure.Load{RequestRate: 200}},
		"request_rate=0.125": {Load: measure.Load{RequestRate: 0.125}},
	} {
		got, ok := ParseAt(text)
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%s: %v %s", text, ok, diff)
		}
		if got.String() != text {
			t.Errorf("%s is written %s", text, got)
		}
	}
	for _, text := range []string{"", "8", "concurrency", "concurrency=", "concurrency=1.5", "concurrency=-1", "request_rate=NaN", "request_rate=+Inf", "load=8"} {
		if at, ok := ParseAt(text); ok {
			t.Errorf("%q is read as %v", text, at)
		}
	}
}

// The same words on the command line take precedence over the file's, and are checked as strictly.
func TestOverrides(t *testing.T) {
	t.Parallel()
	file, err := ParseAnalyze("a.yaml", []byte("input: x\nmode: offline\ntop: 5"), allFormats())
	if err != nil {
		t.Fatal(err)
	}
	got, err := file.With(Overrides{Mode: "online", Top: 7})
	if err != nil || got.Mode != ModeOnline || got.Top != 7 || got.Rank != RankScore || got.ComparedAt() != (At{Lowest: true}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := file.With(Overrides{Mode: "online", At: "best"}); err != nil || got.ComparedAt() != (At{}) {
		t.Errorf("the mode comes before --at: %+v, %v", got.ComparedAt(), err)
	}
	check := func(o Overrides, want ...string) {
		t.Helper()
		_, err := file.With(o)
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%+v: error %v, want %q", o, err, w)
			}
		}
	}
	check(Overrides{Mode: "fast", Rank: "best", At: "8"}, `--mode "fast" is not known; allowed: online, offline`,
		`--rank "best" is not known`, `--at "8" is not a load to compare at; allowed: best`)
	if got, err := file.With(Overrides{Confidence: 0.8}); err != nil || got.Confidence != 0.8 || got.Top != 5 {
		t.Errorf("--confidence 0.8: %+v, %v", got, err)
	}
	check(Overrides{Confidence: 95}, "--confidence 95 must be a probability between 0.5 and 1, such as 0.9")
	check(Overrides{Rank: "top3-mean", At: "concurrency=4"}, "--rank: top3-mean is a mean over loads")
}

// A mode sets what counts: online the latency, at the lowest load; offline the throughput, with any
// latency. The file's own settings take precedence.
func TestModes(t *testing.T) {
	t.Parallel()
	memory := search.Constraint{Metric: measure.Memory, Max: pointer(1e9)}
	p95 := search.Constraint{Metric: measure.LatencyP95, Max: pointer(0.05)}
	campaign := search.Goal{Objective: goals.Single(measure.Cost), Constraints: []search.Constraint{p95, memory}, Price: 1}
	check := func(text string, want search.Goal, at At) {
		t.Helper()
		a, err := ParseAnalyze("a.yaml", []byte("input: x\n"+text), allFormats())
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.Goal(campaign, nil)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", text, err, diff)
		}
		if a.ComparedAt() != at {
			t.Errorf("%s: compared at %v, want %v", text, a.ComparedAt(), at)
		}
	}
	all := campaign.Constraints
	check("", campaign, At{})
	check("mode: online", search.Goal{Objective: goals.Single(measure.LatencyP95), Constraints: all, Price: 1}, At{Lowest: true})
	p90 := search.Constraint{Metric: measure.LatencyP90, Max: pointer(0.02)}
	check("mode: online\nconstraints: {latency_p90: {max: 20ms}}",
		search.Goal{Objective: goals.Single(measure.LatencyP90), Constraints: []search.Constraint{p90}, Price: 1}, At{Lowest: true})
	check("mode: online\nconstraints: {}", search.Goal{Objective: goals.Single(measure.LatencyP99), Constraints: []search.Constraint{}, Price: 1}, At{Lowest: true})
	check("mode: offline", search.Goal{Objective: goals.Single(measure.Throughput), Constraints: []search.Constraint{memory}, Price: 1}, At{})
	check("mode: offline\nobjective: cost\nconstraints: {latency_p95: {max: 50ms}}",
		search.Goal{Objective: goals.Single(measure.Cost), Constraints: []search.Constraint{p95}, Price: 1}, At{})
	check("rank: top3-mean", search.Goal{Objective: goals.Single(measure.Throughput), Constraints: all, Price: 1}, At{})
	if len(campaign.Constraints) != 2 || campaign.Constraints[0].Metric != measure.LatencyP95 {
		t.Errorf("the campaign's constraints were changed: %v", campaign.Constraints)
	}
}

// A profile's mode changes the search only where the file has no setting.
func TestProfileModes(t *testing.T) {
	t.Parallel()
	facts := search.Facts{Cores: 2, Batching: true}
	check := func(text string, objective measure.Metric, levels ...float64) {
		t.Helper()
		p := parse(t, "model: a\nspace: {max_batch_size: 2}\n"+text)
		if diff := cmp.Diff(goals.Single(objective), p.Goal.Objective); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		if diff := cmp.Diff(levels, p.Space(facts).Load.Levels); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	auto := []float64{1, 2, 4, 8, 16, 32, 64}
	check("", measure.Throughput, auto...)
	check("mode: online", measure.LatencyP99, auto...) // a search for low latency begins at the lowest load
	check("mode: online\nconstraints: {latency_p95: {max: 50ms}}", measure.LatencyP95, auto...)
	check("mode: online\nobjective: memory\nload: {concurrency: [2]}", measure.Memory, 2)
	check("mode: offline", measure.Throughput, 64)
	check("mode: offline\nload: {concurrency: [2, 4]}", measure.Throughput, 2, 4)
}
