package progress

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/live"
	"tuner/measure"
	"tuner/profile"
	"tuner/search"
	"tuner/search/verdict"
)

// A line that is too long for the terminal continues behind its head, and breaks only at spaces.
// Without a terminal it is not broken.
func TestTrialLineFitsTheTerminal(t *testing.T) {
	t.Parallel()
	const (
		head    = "  12     45s  "
		trial   = "2 instances × 1 thread, batch 16, delay 1 ms, preferred [4,8], int8, openvino · concurrency 16"
		outcome = "412.3 infer/s, p99 29.8 ms · misses the constraints"
	)
	whole := head + trial + "  →  " + outcome
	for _, columns := range []int{0, 200} {
		if got := trialLine(head, trial, outcome, columns); got != whole {
			t.Errorf("%d columns: %q", columns, got)
		}
	}
	// 80 columns minus 14 for the head are 66
	want := head + "2 instances × 1 thread, batch 16, delay 1 ms, preferred [4,8],\n" +
		"              int8, openvino · concurrency 16\n" +
		"              → 412.3 infer/s, p99 29.8 ms · misses the constraints"
	if diff := cmp.Diff(want, trialLine(head, trial, outcome, 80)); diff != "" {
		t.Errorf("80 columns (-want +got):\n%s", diff)
	}
	if got := trialLine(head, trial, outcome, 10); strings.Count(got, "\n") > 6 {
		t.Errorf("a terminal of 10 columns gets\n%s", got)
	}
}

// Each trial's line has the goal's metrics.
func TestLineHasTheGoalsMetrics(t *testing.T) {
	t.Parallel()
	h := measure.NewHistogram([]time.Duration{400 * time.Microsecond})
	m := measure.Measurement{Windows: []measure.Window{{Duration: time.Second, Requests: 1000, Inferences: 1000, CPUEnergy: 12,
		Sub: []measure.SubWindow{{Requests: 1000, Latency: h}}}}}
	limit := 0.1
	goal := search.Goal{
		Objective:   search.Objective{Terms: []search.Term{{Metric: measure.Cost, Weight: 1}}},
		Constraints: []search.Constraint{{Metric: measure.Energy, Max: &limit}, {Metric: measure.LatencyP99, Max: &limit}}, Price: 0.36,
	}
	if got, want := figuresText(goal, m), "1000.0 infer/s, p99 400 µs, cost 0.100 per million, energy 12.0 mJ"; got != want {
		t.Errorf("the figures are %q, want %q", got, want)
	}
}

// A service trial's line names the engine process, the batches, and the times of the smallest and
// the largest one.
func TestLineOfAServiceTrial(t *testing.T) {
	t.Parallel()
	window := func(requests int, each time.Duration) measure.Window {
		return measure.Window{Duration: time.Second, Server: measure.ServerStats{Requests: requests, ComputeInfer: time.Duration(requests) * each}}
	}
	candidate := search.NewCandidate(search.Setting{Knob: search.KnobInstanceCount, Value: "2"}, search.Setting{Knob: search.KnobMaxBatchSize, Value: "32"})
	check := func(m measure.Measurement, sizes []int, text, outcome string) {
		t.Helper()
		e := search.Event{Measurement: m, Trial: search.Trial{Candidate: candidate, Load: measure.Load{Concurrency: 2, BatchSize: 1},
			Windows: len(sizes), Window: 200 * time.Millisecond, Phase: search.PhaseService, Sizes: sizes}}
		if got := trialText(e.Trial); got != text {
			t.Errorf("trial is %q, want %q", got, text)
		}
		if got := outcomeText(e, search.Goal{}); got != outcome {
			t.Errorf("outcome is %q, want %q", got, outcome)
		}
	}
	check(measure.Measurement{Windows: []measure.Window{window(50, 4*time.Millisecond), window(20, 10*time.Millisecond), window(3, 60*time.Millisecond)}},
		[]int{1, 8, 32}, "service curve of instance_count=2 · concurrency 2 × batch 1…32", "4.00 ms … 60.0 ms")
	check(measure.Measurement{Windows: []measure.Window{window(50, 4*time.Millisecond)}},
		[]int{1}, "service curve of instance_count=2 · concurrency 2 × batch 1", "4.00 ms")
	check(measure.Measurement{Failure: &measure.Failure{Stage: measure.StageCrash, Reason: "signal: killed"}},
		[]int{1, 2}, "service curve of instance_count=2 · concurrency 2 × batch 1…2", "failed (crash): signal: killed")
}

// A failure of a cause that was told names the first trial that had it, whatever was measured
// before it failed.
func TestLineOfARepeatedFailure(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := New(&out, "mlp", search.Goal{}, search.Budget{}, 0, here)
	for i, reason := range []string{"the engine uses 89 MB of memory", "the engine uses 88.5 MB of memory", "exit status 2", "exit status 1"} {
		p.TrialEnded(search.Event{Measurement: measure.Measurement{Failure: &measure.Failure{Stage: measure.StageMemory, Reason: reason}}}, profile.Status{Trials: i + 1})
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{"uses 89 MB of memory", "failed (out of memory) as trial 1", "exit status 2", "exit status 1"} {
		if !strings.HasSuffix(lines[i], want) {
			t.Errorf("trial %d: %q, want an end of %q", i+1, lines[i], want)
		}
	}
}

// The best so far has the figures and the probability of a report, and not those of its last trial.
func TestBestSoFar(t *testing.T) {
	t.Parallel()
	limit := 0.05
	goal := search.Goal{
		Objective:   search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
		Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: &limit}},
	}
	choice := verdict.Choice{Holds: 0.634, Limits: []verdict.Limit{{Constraint: goal.Constraints[0], Probability: 0.634}},
		Values: map[measure.Metric]measure.Estimate{measure.Throughput: {Value: 300, Lo: 290, Hi: 310}, measure.LatencyP99: {Value: 0.0487, Lo: 0.04, Hi: 0.06}}}
	choice.Load = measure.Load{Concurrency: 6, BatchSize: 1}
	status := profile.Status{Verdict: verdict.Verdict{State: verdict.Close, Edge: &choice}}
	if got, want := bestText(goal, status), " best so far default at concurrency 6: 300.0 infer/s [290.0, 310.0], p99 48.7 ms [40.0, 60.0]; p99 ≤ 50 ms kept: 63 %"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	status.Verdict = verdict.Verdict{State: verdict.Nothing, Nearest: &choice}
	if got := bestText(goal, status); got != " none within the constraints yet" {
		t.Errorf("where nothing keeps the limits: %q", got)
	}
}

// board is a display that keeps the frame.
type board struct {
	strings.Builder
	frame live.Frame
}

func (b *board) Show(f live.Frame) error         { b.frame = f; return nil }
func (b *board) Update(change func(*live.Frame)) { change(&b.frame) }
func (b *board) Close()                          { b.frame.Keys = nil }

// press presses a key of the frame.
func (b *board) press(t *testing.T, key rune) {
	t.Helper()
	i := slices.IndexFunc(b.frame.Keys, func(k live.Key) bool { return k.Rune == key })
	if i < 0 {
		t.Fatalf("there is no key %c", key)
	}
	b.frame.Keys[i].Do()
}

// The keys add time, once each, and end the search once there is an answer to confirm.
func TestKeys(t *testing.T) {
	t.Parallel()
	var b board
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}}
	p := New(&b, "cnn", goal, search.Budget{Time: time.Minute}, 0, here)
	b.press(t, '+')
	b.press(t, '+')
	if more := p.More(); more != 4*time.Minute || p.More() != 0 {
		t.Errorf("%v more", more)
	}
	b.press(t, 'c')
	if p.IsEnough() || b.frame.Note != "There is no answer to confirm yet." {
		t.Errorf("without an answer: %v, %q", p.IsEnough(), b.frame.Note)
	}
	choice := verdict.Choice{Holds: 1, Values: map[measure.Metric]measure.Estimate{measure.Throughput: {Value: 300, Lo: 290, Hi: 310}}}
	failed := measure.Measurement{Failure: &measure.Failure{Stage: measure.StageCrash}}
	p.TrialEnded(search.Event{Measurement: failed}, profile.Status{Verdict: verdict.Verdict{State: verdict.Proven, Recommended: &choice}})
	b.press(t, 'c')
	if !p.IsEnough() || b.frame.Note != "The search is over. The answer is confirmed next." {
		t.Errorf("with an answer: %v, %q", p.IsEnough(), b.frame.Note)
	}
	if p.Close(); b.frame.Keys != nil {
		t.Error("the display was not closed")
	}
	if lines := New(&strings.Builder{}, "cnn", goal, search.Budget{}, 0, here); lines.IsEnough() || lines.More() != 0 {
		t.Error("a campaign that prints lines has keys")
	}
}

// here is a campaign on this machine alone.
func here(search.Phase) bool { return false }

// Beside a remote server nobody knows what others took. A trial without windows changes nothing.
func TestNoiseBesideARemoteServer(t *testing.T) {
	t.Parallel()
	var b board
	p := New(&b, "cnn", search.Goal{}, search.Budget{}, 0, func(phase search.Phase) bool { return phase == search.PhaseFinal })
	for i, c := range []struct {
		phase   search.Phase
		windows int
		want    string
	}{
		{search.PhaseSearch, 1, "others 20.0 %"}, {search.PhaseFinal, 0, "others 20.0 %"}, {search.PhaseFinal, 1, "others unknown"},
		{search.PhaseSearch, 0, "others unknown"}, {search.PhaseLoadCurve, 2, "others 20.0 %"},
	} {
		window := measure.Window{Duration: time.Second, Requests: 1, Inferences: 1}
		if c.phase != search.PhaseFinal {
			window.Foreign = 0.2
		}
		p.TrialEnded(search.Event{Trial: search.Trial{Phase: c.phase}, Measurement: measure.Measurement{Windows: slices.Repeat([]measure.Window{window}, c.windows)}}, profile.Status{})
		if texts := b.frame.Noise.Texts(); texts[1] != c.want {
			t.Errorf("trial %d: %q, want %s", i, texts, c.want)
		}
	}
}
