package progress

import (
	"math"
	"strings"
	"testing"
	"time"

	"tuner/gate"
	"tuner/gate/decide"
	"tuner/internal/live"
	"tuner/measure"
	"tuner/spec"
	"tuner/spec/gates"
)

// setup is a gate on throughput with a baseline, and on a limit of the latency.
func setup(t *testing.T) gate.Setup {
	t.Helper()
	g, err := spec.ParseGate("gate.yaml", []byte("baseline: old.onnx\ncandidate: new.onnx\nmetrics: [{name: throughput, margin: 2%}]\nlimits: {latency_p99: {max: 30ms}}\nbudget: 1m\n"))
	if err != nil {
		t.Fatal(err)
	}
	return gate.Setup{Spec: g, Baseline: &gate.Subject{}, Load: measure.Load{Concurrency: 8, BatchSize: 1}}
}

// pair returns a pair with throughputs in requests per second, both of which are one inference. The
// candidate's window has a flag.
func pair(baseline, candidate int) gate.Pair {
	window := func(n int) measure.Window {
		return measure.Window{Duration: time.Second, Requests: n, Inferences: n, Foreign: 0.25,
			Sub: []measure.SubWindow{{Requests: n, Latency: measure.NewHistogram([]time.Duration{time.Millisecond})}}}
	}
	noisy := window(candidate)
	noisy.Flags = []measure.Flag{measure.FlagForeign}
	return gate.Pair{Baseline: measure.Measurement{Windows: []measure.Window{window(baseline)}}, Candidate: measure.Measurement{Windows: []measure.Window{noisy}}}
}

func TestLines(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := New(&out, setup(t))
	p.Measured(pair(1000, 1010), gate.Progress{Pairs: 3, Most: 20, Elapsed: 12 * time.Second})
	p.Close()
	(*Progress)(nil).Close()
	const want = "gating new at concurrency 8 (budget 1m0s), results in out/new-gate\n" +
		"   12s  3 of at most 20: throughput 1000.0 infer/s → 1010.0 infer/s\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// A gate of several models shows a metric of each.
func TestSeveralModels(t *testing.T) {
	t.Parallel()
	g, err := gates.Parse("gate.yaml", []byte(`models:
  a: {baseline: a, candidate: a, load: {concurrency: 8}, metrics: [throughput, latency_p99]}
  b: {baseline: b, candidate: b, load: {concurrency: 2}, metrics: [latency_avg]}
metrics: [memory]
`))
	if err != nil {
		t.Fatal(err)
	}
	mix, err := measure.NewMix(measure.Part{Model: "a", Concurrency: 8, BatchSize: 1}, measure.Part{Model: "b", Concurrency: 2, BatchSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := gate.Setup{Spec: g, Baseline: &gate.Subject{}, Load: measure.Load{Scale: 1, Mix: mix}, Models: []gate.Setup{{Spec: g.Models[0]}, {Spec: g.Models[1]}}}
	measured := pair(1000, 1010)
	for _, side := range []*measure.Measurement{&measured.Baseline, &measured.Candidate} {
		other := side.Windows[0]
		side.Windows[0].Model, other.Model = "a", "b"
		side.Windows = append(side.Windows, other)
	}
	var out strings.Builder
	New(&out, s).Measured(measured, gate.Progress{Pairs: 1, Most: 20, Elapsed: 12 * time.Second})
	const want = "gating a+b at a concurrency 8, b concurrency 2 (budget 15m0s), results in out/a+b-gate\n" +
		"   12s  1 of at most 20: a.throughput 1000.0 infer/s → 1010.0 infer/s, b.latency_avg 1.00 ms → 1.00 ms\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	var shown display
	p := New(&shown, s)
	p.Measured(measured, gate.Progress{Pairs: 1, Most: 20, Elapsed: 12 * time.Second})
	p.Close()
	f := shown.frame
	if len(f.Recent) != 2 || f.Recent[1].Text != "b.latency_avg" || f.Chart.Y.Name != "a.throughput" || len(f.Answer) != 4 || !strings.HasPrefix(f.Answer[2], "b.latency_avg: ") {
		t.Errorf("frame %+v", f)
	}
}

// The frame has both sides of each pair, what is known about each criterion, and the longest time that
// is left.
func TestFrames(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := &Progress{budget: s.Spec.Budget, metric: measure.Throughput, criteria: gate.Criteria(s.Spec)}
	began := time.Now()
	p.view = &live.View{Frame: p.first(s, began)}
	check := func(what, want string) {
		t.Helper()
		var text strings.Builder
		for _, l := range p.view.Frame.Lines(live.Size{Columns: 100, Rows: 24}, began.Add(20*time.Second), true) {
			text.WriteString(l.Text(false) + "\n")
		}
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s: %q is not in\n%s", what, want, text.String())
		}
	}
	check("first", "gate new at concurrency 8")
	check("first", "throughput: not measured yet; 2 % lower is allowed.\nlatency_p99: not measured yet; at most 30.0 ms is allowed.\nnow  pair 1, on fresh processes\n")
	// A factor of 0.99 of the throughput is 1/0.99 − 1 worse; the interval is one of logarithms.
	tell := func(first, second decide.Verdict) {
		p.change(pair(1000, 990), gate.Progress{Pairs: 5, Most: 10, Elapsed: 20 * time.Second, Standings: []decide.Standing{
			{Verdict: first, Value: -math.Log(0.99), Lo: -math.Log(1.01), Hi: -math.Log(0.97), Pairs: 5}, {Verdict: second, Lo: math.Inf(-1), Hi: math.Inf(1), Pairs: 5},
		}})(&p.view.Frame)
	}
	tell(decide.Inconclusive, decide.Pass)
	check("a pair", "throughput: open after 5 pairs: -3.0 % to +1.0 %; 2 % lower is allowed.\nlatency_p99: pass after 5 pairs: unknown; at most 30.0 ms is allowed.\nnow  pair 6 of at most 10, on fresh processes\n")
	check("a pair", "20s, about 20s left") // ten pairs of 4 s
	check("a pair", "noise  steal 0.0 %  others 25.0 %")
	check("a pair", "! 1 of 2 windows: other processes used more than 10 % of the CPU time")
	check("a pair", "throughput (x baseline) over pairs")
	check("a pair", "   5     20s  throughput")
	check("a pair", "1000.0 infer/s -> 990.0 infer/s")
	if points := p.view.Frame.Chart.Points; len(points) != 2 || points[0].IsKept || !points[1].IsKept || p.view.Frame.IsGood {
		t.Errorf("points %+v, good %v", points, p.view.Frame.IsGood)
	}
	if tell(decide.Pass, decide.Pass); !p.view.Frame.IsGood {
		t.Error("a gate that passes is not good")
	}
}

// display is one that is no terminal.
type display struct {
	strings.Builder
	frame   live.Frame
	isEnded bool
}

func (d *display) Show(f live.Frame) error           { d.frame = f; return nil }
func (d *display) Update(change func(f *live.Frame)) { change(&d.frame) }
func (d *display) Close()                            { d.isEnded = true }

// A display shows frames in place of lines, with names for its columns and marks.
func TestDisplay(t *testing.T) {
	t.Parallel()
	check := func(s gate.Setup, measured gate.Pair, points int, marks live.Marks, outcome string) {
		t.Helper()
		var shown display
		p := New(&shown, s)
		p.Measured(measured, gate.Progress{Pairs: 1, Most: 10, Elapsed: time.Second})
		p.Close()
		f := shown.frame
		if len(f.Chart.Points) != points || f.Chart.Marks != marks || f.Chart.Y.Unit != "infer/s" || f.Heads.Outcome != outcome || len(f.Keys) != 1 || !shown.isEnded {
			t.Errorf("frame %+v, ended %v", f, shown.isEnded)
		}
		if text := shown.String(); strings.Count(text, "\n") != 1 {
			t.Errorf("it printed %q", text)
		}
	}
	s := setup(t)
	check(s, pair(1000, 990), 2, live.Marks{Kept: "candidate", Missed: "baseline"}, "Baseline → candidate")
	s.Baseline = nil
	check(s, gate.Pair{Candidate: pair(1000, 990).Candidate}, 1, live.Marks{Kept: "candidate"}, "Candidate")
}

// Without criteria the candidate is measured for a baseline. The chart has the limit of its metric.
func TestFrameWithoutCriteria(t *testing.T) {
	t.Parallel()
	if text, isGood := (&Progress{}).answer(nil); len(text) != 1 || isGood {
		t.Errorf("%q, %v", text, isGood)
	}
	s := setup(t)
	p := &Progress{metric: measure.LatencyP99, criteria: gate.Criteria(s.Spec)}
	if limit := p.first(s, time.Now()).Chart.Limit; limit != 0.03 {
		t.Errorf("limit %v", limit)
	}
}
