package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/search"
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

func TestHeadline(t *testing.T) {
	t.Parallel()
	check := func(name, want string, r analyze.Result) {
		t.Helper()
		if got := headline(r); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
	throughput := objective(search.Term{Metric: measure.Throughput, Weight: 1})
	latency := objective(search.Term{Metric: measure.LatencyP99, Weight: 1})
	weighted := objective(search.Term{Metric: measure.Throughput, Weight: 10}, search.Term{Metric: measure.LatencyP99, Weight: 5})
	check("more is better", "2.00 × the default's throughput [1.90, 2.10]: 200.0 infer/s at concurrency 8 against 100.0 infer/s at concurrency 8.",
		summary(throughput, 100, 200, 2, 1.9, 2.1))
	// A gain of 2 in latency is half the latency; 1/2.5 = 0.40 and 1/1.6 = 0.625.
	check("less is better", "0.50 × the default's p99 [0.40, 0.62]: 10.0 ms at concurrency 8 against 20.0 ms at concurrency 8.",
		summary(latency, 0.020, 0.010, 2, 1.6, 2.5))
	check("several metrics", "1.20 × better than the default in throughput × 10, p99 × 5 [1.10, 1.30]: 120.0 infer/s at concurrency 8 against 100.0 infer/s at concurrency 8.",
		summary(weighted, 100, 120, 1.2, 1.1, 1.3))
	check("not shown to be better", "1.02 × the default's throughput [0.98, 1.06]: 102.0 infer/s at concurrency 8 against 100.0 infer/s at concurrency 8. "+
		"The interval holds 1: it is not shown to be better than the default.",
		summary(throughput, 100, 102, 1.02, 0.98, 1.06))
	noGain := summary(throughput, 100, 200, 2, 1.9, 2.1)
	noGain.Configs[0].Gain, noGain.Configs[1].Best = nil, nil
	check("the default was not measured", "The best is m_config_0 (batch 16): 200.0 infer/s at concurrency 8. The default was not measured.", noGain)
	alone := summary(throughput, 100, 200, 2, 1.9, 2.1)
	alone.Configs = alone.Configs[1:]
	check("the default is the best", "The default configuration is the best that was found: 100.0 infer/s at concurrency 8.", alone)
	check("nothing", "Nothing was measured: every trial failed.", analyze.Result{Goal: throughput, Trials: 2, Failed: 2})
	check("no trial", "Nothing was measured: no trial was made.", analyze.Result{Goal: throughput})
	check("others", "None of these configurations has figures.", analyze.Result{Goal: throughput, Trials: 2, Failed: 1})
	check("others at a load", "None of these configurations has figures at concurrency=8.",
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
		c := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4).Campaign()
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
		if got := headline(r); !strings.HasPrefix(got, "Nothing satisfies "+want+". The nearest is ") {
			t.Errorf("want that nothing satisfies %s:\n%s", want, got)
		}
		if got := newVerdict(r).Claim; got != "satisfies "+want {
			t.Errorf("the page says that none %s, want %s", got, want)
		}
	}
	check("error rate ≤ 1 %", refusing())
	check("error rate ≤ 1 %", refusing(), small)
	check("p99 ≤ 3 ms, error rate ≤ 1 %", refusing(), small, quick)
	check("p99 ≤ 3 ms", typical(t).Campaign(), quick, small)
	energy := objective(search.Term{Metric: measure.Energy, Weight: 1})
	unknown := analyze.Config{Best: &analyze.Point{Sample: analyze.Sample{Misses: energy.Unscored(func(measure.Metric) (float64, bool) { return 0, false })}}}
	if got, want := missedText(analyze.Result{Goal: energy, Configs: []analyze.Config{unknown}}), "energy per inference > 0"; got != want {
		t.Errorf("without a score what is missed is %q, want %q", got, want)
	}
}

func TestConfirmation(t *testing.T) {
	t.Parallel()
	c := summary(objective(search.Term{Metric: measure.Throughput, Weight: 1}), 100, 200, 2, 1.9, 2.1).Configs[0]
	check := func(want string) {
		t.Helper()
		if got := confirmation(analyze.Result{}, c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	check("Not confirmed on fresh engine launches: the figures are the search's own, and may flatter.")
	c.FailedFinals = true
	check("Not confirmed, since its finals failed: the figures are the search's own, and it may not serve.")
	c.FailedFinals, c.Best.Confirmed, c.Best.Launches = false, true, 3
	check("Confirmed on 3 fresh engine launches.")
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

func TestLimitNotes(t *testing.T) {
	t.Parallel()
	limit := 0.050
	goal := objective(search.Term{Metric: measure.LatencyP99, Weight: 1})
	goal.Constraints = []search.Constraint{{Metric: measure.LatencyP99, Max: &limit}}
	r := summary(goal, 0.045, 0.040, 1.1, 1, 1.2)
	r.Configs[0].Best.Values[measure.LatencyP99] = measure.Estimate{Value: 0.040, Lo: 0.039, Hi: 0.041}
	r.Configs[1].Best.Values[measure.LatencyP99] = measure.Estimate{Value: 0.045, Lo: 0.041, Hi: 0.052}
	want := []string{"Close to the limit, the 95 % interval reaches beyond p99 ≤ 50 ms: default *."}
	if diff := cmp.Diff(want, limitNotes(r)); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// What a strategy claims, and how many service trials it made, stands in every report.
func TestClaimsAndServiceTrials(t *testing.T) {
	t.Parallel()
	best := analyzetest.Candidate(2, 1, 16)
	r := result(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8).Measure(best, 16).Service(best, 1).Service(best, 2).
		End("the search has converged", false).Claim("Nothing that was not measured is expected to gain more than 1 %."), analyze.Options{})
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
		if text := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(text, "expected to gain more than 1 %.") {
			t.Errorf("%s does not say what is claimed:\n%s", name, b.String())
		}
	}
}

// What a report of some configurations rests on is the whole campaign: no failure becomes a measurement.
func TestEffortOfSomeConfigurations(t *testing.T) {
	t.Parallel()
	all := result(t, typical(t), analyze.Options{})
	kept, _ := all.Only([]string{"minilm_config_4"})
	if got, want := effort(kept), effort(all); got != want || !strings.Contains(want, "7 configurations, 17 measurements") {
		t.Errorf("effort is %q, want %q", got, want)
	}
}

// Before the first trial there are no figures, and nothing has failed.
func TestNothingWasTried(t *testing.T) {
	t.Parallel()
	r := result(t, analyzetest.New(t, analyzetest.Profile), analyze.Options{})
	text := written(t, r, WriteTable)
	if !strings.Contains(text, "no trial was made") || strings.Contains(text, failedWord) {
		t.Errorf("of a campaign without a trial:\n%s", text)
	}
	untried := result(t, analyzetest.New(t, analyzetest.Profile).Measure(analyzetest.Candidate(2, 1, 16), 16), analyze.Options{})
	if text := written(t, untried, WriteTable); strings.Contains(text, failedWord) {
		t.Errorf("the default was not tried, and has not failed:\n%s", text)
	}
}
