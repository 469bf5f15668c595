package figures

import (
	"encoding/json"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/measure"
	"tuner/report/reporttest"
	"tuner/search"
	"tuner/search/verdict"
)

// summary makes a result with a default and a better configuration, from values of one metric.
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

// If nothing was measured, the text gives the reason.
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
		if got := Within(search.Goal{Constraints: constraints}); got != want {
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
	check("not measured again, since its fresh processes failed: it may fail in service")
	c.FailedFinals, c.Best.Confirmed, c.Best.Launches = false, true, 3
	check("measured again on 3 fresh processes")
}

func TestMachineText(t *testing.T) {
	t.Parallel()
	check := func(facts, want string) {
		t.Helper()
		if got := MachineText(json.RawMessage(facts)); got != want {
			t.Errorf("facts %s: got %q, want %q", facts, got, want)
		}
	}
	check(`{"cpu":{"model":"Formula","logical":2},"memory":{"total":16000000000}}`, "Formula, 2 cores, 16 GB")
	check(``, "unknown processor")
	check(`{"cpu":7}`, "unknown processor")
}

// A report of some configurations still counts the whole campaign, and counts no failure as a
// measurement.
func TestEffortOfSomeConfigurations(t *testing.T) {
	t.Parallel()
	all := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	kept, _ := all.Only([]string{"minilm_config_4"})
	if got, want := Effort(kept), Effort(all); got != want || !strings.Contains(want, "7 configurations, 18 measurements") {
		t.Errorf("effort is %q, want %q", got, want)
	}
}
