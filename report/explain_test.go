package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/search"
	"tuner/spec"
)

// predicted is the typical campaign as if a strategy that predicts had made it, with an effect of every kind.
func predicted(t *testing.T) analyze.Result {
	t.Helper()
	r := ranked(t, typical(t), analyze.Options{})
	x := &r.Explanation
	number := func(v float64) *float64 { return &v }
	best := &x.Subjects[0]
	best.Curve = &analyze.ServiceCurve{Sizes: []int{1, 4, 16}, Alone: []float64{0.005, 0.014, 0.05}, Crowded: []float64{0.0055, 0.0154, 0.055}, Overhead: 0.0003}
	for _, p := range []analyze.Prediction{
		{Metric: measure.Throughput, Simulated: number(640.1), Believed: &measure.Estimate{Value: 620, Lo: 600, Hi: 640}},
		{Metric: measure.LatencyP99, Simulated: number(0.0231), Believed: &measure.Estimate{Value: 0.0205, Lo: 0.02, Hi: 0.021}},
		{Metric: measure.LatencyAvg, Simulated: number(0.0270)},
	} {
		p.Measured = r.Configs[0].Best.Values[p.Metric]
		best.Predictions = append(best.Predictions, p)
	}
	limit := 2e8
	change := func(value, half float64) measure.Estimate {
		return measure.Estimate{Value: value, Lo: value - half, Hi: value + half}
	}
	x.Knobs = []search.KnobEffect{
		{Knob: search.KnobInstanceCount, Chosen: "2", Others: []search.Effect{
			{Value: "1", Basis: search.BasisMeasured, Change: change(-0.37, 0.02)},
			{Value: "8", Basis: search.BasisPredicted, Misses: []search.Miss{
				{Constraint: search.Constraint{Metric: measure.Memory, Max: &limit}, Value: 8.6e8, Violation: 3.3}}}}},
		{Knob: search.KnobIntraOpThreads, Chosen: "1", Others: []search.Effect{
			{Value: "0", Basis: search.BasisBound, Change: change(-0.082, 0.05)},
			{Value: "2", Basis: search.BasisBound, Change: change(0.031, 0.01)},
			{Value: "4", Basis: search.BasisUnknown}}},
		{Knob: search.KnobMaxQueueDelay, Chosen: "0us", Others: []search.Effect{{Value: "100us", Basis: search.BasisPredicted, Change: change(-0.003, 0.02)}}},
	}
	x.Barred = &analyze.Barred{Name: "minilm_config_6", Load: measure.Load{Concurrency: 64, BatchSize: 1}, Change: 0.2, Misses: []search.Miss{
		{Constraint: search.Constraint{Metric: measure.Memory, Max: &limit}, Value: 3e8, Violation: 0.5}}}
	x.Untried = analyze.Untried{Candidates: 180, Measured: 23, Predicted: 97, Unreached: 0, Gain: number(0.012), Skipped: []search.Fold{
		{Reason: "by service times that are predicted from engines like them, they are not expected to be better", Count: 60}}}
	x.Dropped = []measure.Metric{measure.LatencyP99}
	r.Folds = []search.Fold{{Reason: "a batch of one never waits", Count: 12}}
	return r
}

func TestExplanations(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]analyze.Result{
		"found.why.txt":      ranked(t, typical(t), analyze.Options{}),
		"infeasible.why.txt": ranked(t, typical(t), analyze.Options{Goal: tight()}),
		"predicted.why.txt":  predicted(t),
		"unmeasured.why.txt": {},
	} {
		var b bytes.Buffer
		if err := WriteExplanation(&b, r); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		golden(t, name, b.Bytes())
		for line := range strings.Lines(b.String()) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 120 {
				t.Errorf("%s: line has %d columns: %s", name, n, line)
			}
		}
		if err := WriteExplanation(failing{}, r); !errors.Is(err, errFull) {
			t.Errorf("%s: error is %v, want %v", name, err, errFull)
		}
	}
}

// Without the best of the campaign no other configuration is explained with its figures.
func TestReportWithoutTheBest(t *testing.T) {
	t.Parallel()
	r, _ := ranked(t, typical(t), analyze.Options{}).Only([]string{"minilm_config_1"})
	const want = "There is nothing to explain: the best of the campaign is not among the configurations that are reported.\n"
	if got := written(t, r, WriteExplanation); got != want {
		t.Errorf("the explanation is %q, want %q", got, want)
	}
	markdown := func(w io.Writer, r analyze.Result) error { return WriteMarkdown(w, r, false) }
	if text := written(t, r, markdown) + written(t, r, WriteJSON); strings.Contains(text, "## Why this configuration") || strings.Contains(text, `"explanation"`) {
		t.Error("another configuration is explained with the figures of the best")
	}
}

// What looked better and did not serve on a fresh launch is not the answer.
func TestFailedFinalsAreSaid(t *testing.T) {
	t.Parallel()
	failing, other := analyzetest.Candidate(2, 1, 16), analyzetest.Candidate(2, 1, 4)
	r := ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 64).Measure(failing, 16).Measure(other, 8).
		FailFinal(failing, 16).Confirm(other, 8), analyze.Options{})
	if best, ok := r.Winner(); !ok || best.Candidate.Key() != other.Key() {
		t.Errorf("the best is %s, whose fresh process failed", best.Candidate.Describe())
	}
}

// What limits a configuration is said with the figures that show it.
func TestBottleneckTexts(t *testing.T) {
	t.Parallel()
	r := ranked(t, typical(t), analyze.Options{})
	check := func(bottleneck analyze.Bottleneck, want string, change func(*analyze.Breakdown, *analyze.Config)) {
		t.Helper()
		s, c := r.Explanation.Subjects[0], r.Configs[0]
		breakdown, point := *s.Breakdown, *c.Best
		s.Bottleneck, s.Breakdown, c.Best = bottleneck, &breakdown, &point
		change(&breakdown, &c)
		if got := bottleneckText(r, s, c) + " " + adviceText(r, s, c); !strings.Contains(got, want) {
			t.Errorf("%s: %q is missing in %q", bottleneck, want, got)
		}
	}
	nothing := func(*analyze.Breakdown, *analyze.Config) {}
	check(analyze.BottleneckCompute, "The 2 cores are full", nothing)
	check(analyze.BottleneckCompute, "1.0 of 2 cores are idle", func(b *analyze.Breakdown, _ *analyze.Config) { b.EngineCPU = 0.95 })
	check(analyze.BottleneckCompute, "The GPU computes for 97 % of the time", func(b *analyze.Breakdown, _ *analyze.Config) { b.GPU = 0.97 })
	check(analyze.BottleneckQueue, "hold a request back for 2.00 ms", func(_ *analyze.Breakdown, c *analyze.Config) { c.Setup.QueueDelay = 2e6 })
	check(analyze.BottleneckQueue, "Requests come unevenly", nothing)
	check(analyze.BottleneckClient, "Client, wire and front end limit it", nothing)
	check(analyze.BottleneckClient, "The client limits it: the load generator was short of CPU", func(_ *analyze.Breakdown, c *analyze.Config) {
		c.Best.Flags = []measure.Flag{measure.FlagClientCPU}
	})
	check(analyze.BottleneckLoad, "Nothing is saturated: 0.50 of 2 instances are", func(b *analyze.Breakdown, _ *analyze.Config) { b.Busy = 0.5 })
	check(analyze.BottleneckUnknown, "statistics are missing", nothing)
}

// The explanation's keys stand in the documentation, those too that a grid has not.
func TestExplanationFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/reference/results.md")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteJSON(&b, predicted(t)); err != nil {
		t.Fatal(err)
	}
	var value map[string]any
	if err := json.Unmarshal(b.Bytes(), &value); err != nil {
		t.Fatal(err)
	}
	keys := keysOf(value["explanation"])
	for _, want := range []string{"possible_gain", "service_curve", "simulated", "barred"} {
		if !keys[want] {
			t.Errorf("the explanation has no %q", want)
		}
	}
	for key := range keys {
		if !strings.Contains(string(doc), "`"+key) {
			t.Errorf("docs/reference/results.md does not mention %q", key)
		}
	}
}

// Why two configurations are not compared is said as it is.
func TestWhatIsNotCompared(t *testing.T) {
	t.Parallel()
	check := func(r analyze.Result, want string) {
		t.Helper()
		if text := strings.Join(strings.Fields(written(t, r, WriteExplanation)), " "); !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if text := written(t, ofTwoServers(t, false), WriteExplanation); strings.Contains(text, "the default's throughput") {
		t.Errorf("the default was measured on another server, and is compared:\n%s", text)
	}
	check(ranked(t, typical(t), analyze.Options{Rank: spec.RankTop3Mean}), "at concurrency 4 cannot be compared: it was measured at too few loads for a mean.")
}
