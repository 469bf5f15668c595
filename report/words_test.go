package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/search"
	"tuner/search/verdict"
)

// summary makes a result of a default and a better configuration out of values of one metric.
func summary(goal search.Goal, base, best, gain, lo, hi float64) analyze.Result {
	metric := goal.Objective.Terms[0].Metric
	config := func(name string, value float64, c search.Candidate) analyze.Config {
		p := &analyze.Point{Load: measure.Load{Concurrency: 8, BatchSize: 1}}
		p.Values = map[measure.Metric]measure.Estimate{metric: {Value: value}}
		return analyze.Config{Name: name, Candidate: c, Best: p}
	}
	winner := config("m_config_0", best, search.NewCandidate(search.Setting{Knob: search.KnobMaxBatchSize, Value: "16"}))
	winner.Gain = &measure.Estimate{Value: gain, Lo: lo, Hi: hi}
	return analyze.Result{Goal: goal, Configs: []analyze.Config{winner, config("m_config_default", base, search.Candidate{})}}
}

func objective(terms ...search.Term) search.Goal {
	return search.Goal{Objective: search.Objective{Terms: terms}}
}

// What was not measured says why.
func TestUnmeasured(t *testing.T) {
	t.Parallel()
	throughput := objective(search.Term{Metric: measure.Throughput, Weight: 1})
	check := func(want string, r analyze.Result) {
		t.Helper()
		a := AnswerOf(r)
		if a.Headline != want || a.State != verdict.Unmeasured || a.Summary() != want {
			t.Errorf("got %+v, want %s", a, want)
		}
	}
	check("Nothing was measured: every trial failed.", analyze.Result{Goal: throughput, Trials: 2, Failed: 2})
	check("Nothing was measured: no trial was made.", analyze.Result{Goal: throughput})
	check("None of these configurations has figures.", analyze.Result{Goal: throughput, Trials: 2, Failed: 1})
	check("None of these configurations has figures at concurrency=8.",
		analyze.Result{Goal: throughput, Trials: 2, Failed: 1, At: &measure.Load{Concurrency: 8}})
}

func TestConstraintText(t *testing.T) {
	t.Parallel()
	number := func(v float64) *float64 { return &v }
	check := func(want string, constraints ...search.Constraint) {
		t.Helper()
		if got := within(search.Goal{Constraints: constraints}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	check("")
	check(" within p99 ≤ 50 ms", search.Constraint{Metric: measure.LatencyP99, Max: number(0.05)})
	check(" within p95 ≤ 750 µs, memory ≤ 2147 MB", search.Constraint{Metric: measure.LatencyP95, Max: number(0.00075)},
		search.Constraint{Metric: measure.Memory, Max: number(2 << 30)})
	check(" within p99.9 ≤ 400 µs, cost ≤ 0.25 per million", search.Constraint{Metric: "latency_p99.9", Max: number(0.0004)},
		search.Constraint{Metric: measure.Cost, Max: number(0.25)})
	check(" within GPU memory ≤ 2000 MB, GPU power ≤ 250 W, energy per inference ≤ 50.0 mJ", search.Constraint{Metric: measure.GPUMemory, Max: number(2e9)},
		search.Constraint{Metric: measure.GPUPower, Max: number(250)}, search.Constraint{Metric: measure.Energy, Max: number(0.05)})
	check(" with GPU utilization ≥ 20 % and GPU utilization ≤ 80 %", search.Constraint{Metric: measure.GPUUtilization, Min: number(0.2), Max: number(0.8)})
	check(" with throughput ≥ 100 infer/s", search.Constraint{Metric: measure.Throughput, Min: number(100)})
	check(" with mean latency ≥ 1 ms and mean latency ≤ 7.5 ms",
		search.Constraint{Metric: measure.LatencyAvg, Min: number(0.001), Max: number(0.0075)})
}

// What nothing satisfies is what is missed: limits that are kept are not to blame, and failed requests have a limit that no goal names.
func TestWhatIsMissed(t *testing.T) {
	t.Parallel()
	refusing := func() analyze.Campaign { // half of the requests
		c := complete(t).Campaign()
		for _, e := range c.Events {
			for i, w := range e.Measurement.Windows {
				e.Measurement.Windows[i].Errors = w.Requests
			}
		}
		return c
	}
	short, much := 0.003, 1e12
	quick, small := search.Constraint{Metric: measure.LatencyP99, Max: &short}, search.Constraint{Metric: measure.Memory, Max: &much}
	check := func(want string, c analyze.Campaign, constraints ...search.Constraint) {
		t.Helper()
		goal := objective(search.Term{Metric: measure.Throughput, Weight: 1})
		goal.Constraints = constraints
		r, err := analyze.Analyze(c, analyze.Options{Goal: &goal})
		if err != nil {
			t.Fatal(err)
		}
		if got := AnswerOf(r).Summary(); !strings.HasPrefix(got, "Nothing satisfies "+want+". ") || !strings.Contains(got, "Nearest: default at ") {
			t.Errorf("want that nothing satisfies %s:\n%s", want, got)
		}
		if got := newVerdict(r).Claim; got != "satisfies "+want {
			t.Errorf("the page says that none %s, want %s", got, want)
		}
	}
	check("error rate ≤ 1 %", refusing())
	check("error rate ≤ 1 %", refusing(), small)
	check("p99 ≤ 3 ms, error rate ≤ 1 %", refusing(), small, quick)
	check("p99 ≤ 3 ms", complete(t).Campaign(), quick, small)
	energy := objective(search.Term{Metric: measure.Energy, Weight: 1})
	unknown := analyze.Config{Best: &analyze.Point{Sample: analyze.Sample{Misses: energy.Unscored(func(measure.Metric) (float64, bool) { return 0, false })}}}
	if got, want := missedText(analyze.Result{Goal: energy, Configs: []analyze.Config{unknown}}), "energy per inference > 0"; got != want {
		t.Errorf("without a score what is missed is %q, want %q", got, want)
	}
}

func TestAgain(t *testing.T) {
	t.Parallel()
	c := summary(objective(search.Term{Metric: measure.Throughput, Weight: 1}), 100, 200, 2, 1.9, 2.1).Configs[0]
	check := func(want string) {
		t.Helper()
		if got := againText(analyze.Result{}, c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	check("not measured again on a fresh process")
	c.FailedFinals = true
	check("not measured again, since its fresh processes failed: it may not serve")
	c.FailedFinals, c.Best.Confirmed, c.Best.Launches = false, true, 3
	check("measured again on 3 fresh processes")
}

func TestMachineText(t *testing.T) {
	t.Parallel()
	check := func(facts, want string) {
		t.Helper()
		if got := machineText(json.RawMessage(facts)); got != want {
			t.Errorf("facts %s: got %q, want %q", facts, got, want)
		}
	}
	check(`{"cpu":{"model":"Formula","logical":2},"memory":{"total":16000000000}}`, "Formula, 2 cores, 16 GB")
	check(``, "unknown processor")
	check(`{"cpu":7}`, "unknown processor")
}

// What the verdict says, and how many service trials it made, stands in every report.
func TestClaimsAndServiceTrials(t *testing.T) {
	t.Parallel()
	best := analyzetest.Candidate(2, 1, 16)
	r := ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8).Measure(best, 16).Service(best, 1).Service(best, 2).
		End("the search has converged", false), analyze.Options{})
	claim := r.Ending.Statement[len(r.Ending.Statement)-1]
	claim = claim[strings.Index(claim, ": ")+2:]
	if got, want := effort(r), "2 configurations, 2 measurements (4 windows) and 2 service curves in 11s"; got != want {
		t.Errorf("effort is %q, want %q", got, want)
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"table":    func(b *bytes.Buffer) error { return WriteTable(b, r) },
		"markdown": func(b *bytes.Buffer) error { return WriteMarkdown(b, r, false) },
		"json":     func(b *bytes.Buffer) error { return WriteJSON(b, r) },
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

// What a report of some configurations rests on is the whole campaign: no failure becomes a measurement.
func TestEffortOfSomeConfigurations(t *testing.T) {
	t.Parallel()
	all := ranked(t, typical(t), analyze.Options{})
	kept, _ := all.Only([]string{"minilm_config_4"})
	if got, want := effort(kept), effort(all); got != want || !strings.Contains(want, "7 configurations, 18 measurements") {
		t.Errorf("effort is %q, want %q", got, want)
	}
}

// Before the first trial there are no figures, and nothing has failed.
func TestNothingWasTried(t *testing.T) {
	t.Parallel()
	r := ranked(t, analyzetest.New(t, analyzetest.Profile), analyze.Options{})
	text := written(t, r, WriteTable)
	if !strings.Contains(text, "no trial was made") || strings.Contains(text, failedWord) {
		t.Errorf("of a campaign without a trial:\n%s", text)
	}
	untried := ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(analyzetest.Candidate(2, 1, 16), 16), analyze.Options{})
	if text := written(t, untried, WriteTable); strings.Contains(text, failedWord) {
		t.Errorf("the default was not tried, and has not failed:\n%s", text)
	}
}
