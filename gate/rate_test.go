package gate

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tuner/gate/decide"
	"tuner/measure"
	"tuner/runner"
)

// server is an engine with a queue. Requests arrive evenly at the job's rate, and are answered one
// by one. As in package runner, each measurement begins with an empty queue and a warm-up. The
// warm-up is shorter if engines take turns.
type server struct {
	*fake
	capacity float64 // requests per second
}

// offered is the rate of the load in requests per second.
const offered = 200.0

// Package runner's longest warm-ups: until a load is steady, and in turns.
const (
	warmUp          = 5 * time.Second
	firstTurnWarmUp = time.Second
	turnWarmUp      = 100 * time.Millisecond
)

func (s server) Measure(ctx context.Context, job runner.Job) (measure.Measurement, error) {
	from := warmUp
	switch {
	case job.Turn && job.Fresh:
		from = firstTurnWarmUp
	case job.Turn:
		from = turnWarmUp
	}
	s.window = func(n int) measure.Window {
		return s.at(from+time.Duration(n%max(1, job.Windows))*job.Window, job.Window)
	}
	return s.fake.Measure(ctx, job)
}

// at returns the window that begins at an offset after the start of the load.
func (s server) at(from, length time.Duration) measure.Window {
	answered := int(min(offered, s.capacity) * length.Seconds())
	latencies := make([]time.Duration, answered)
	for i := range latencies {
		// length of the queue, as a delay
		behind := max(0, offered/s.capacity-1) * (from.Seconds() + length.Seconds()*float64(i)/float64(answered))
		latencies[i] = time.Duration((1/s.capacity + behind) * float64(time.Second))
	}
	return measure.Window{Duration: length, Scheduled: int(offered * length.Seconds()), Requests: answered, Inferences: answered,
		Sub: []measure.SubWindow{{Requests: answered, Latency: measure.NewHistogram(latencies)}}}
}

// newRace makes a gate at a request rate.
func newRace(baseline, candidate float64, criteria ...Criterion) *contest {
	c := newContest(criteria...)
	job := runner.Job{Load: measure.Load{RequestRate: offered}, Window: 500 * time.Millisecond}
	c.Gate.Candidate = Side{Engine: server{c.candidate, candidate}, Job: job}
	c.Gate.Baseline = nil
	if baseline > 0 {
		c.Gate.Baseline = &Side{Engine: server{c.baseline, baseline}, Job: job}
	}
	return c
}

// A server with 2 % overload keeps no limit, although this is too little to flag a window. Its
// latencies at the end are far beyond 60 ms. If the limit is even larger, nothing is proven.
func TestLimitsAtARate(t *testing.T) {
	t.Parallel()
	p99 := func(bound float64) Criterion { return Criterion{Metric: measure.LatencyP99, Bound: bound} }
	for name, tt := range map[string]struct {
		capacity  float64
		criterion Criterion
		want      decide.Verdict
		reason    string
	}{
		"keeps up":              {250, p99(0.06), decide.Pass, ""},
		"does not":              {196, p99(0.06), decide.Fail, "at most 60.0 ms is allowed"},
		"within a wide limit":   {196, p99(10), decide.Inconclusive, "the candidate does not keep up with 200 requests/s: its queue keeps growing, so no limit on latency holds for long"},
		"the mean":              {196, Criterion{Metric: measure.LatencyAvg, Bound: 10}, decide.Inconclusive, "does not keep up"},
		"memory is no time":     {196, Criterion{Metric: measure.Memory, Bound: 1e9}, decide.Pass, "does not keep up"},
		"throughput is no time": {196, Criterion{Metric: measure.Throughput, Bound: 199, Min: true}, decide.Fail, "throughput is 196.0 infer/s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newRace(0, tt.capacity, tt.criterion)
			o := c.run(t)
			if o.Verdict != tt.want || o.Standings[0].Verdict != tt.want || !strings.Contains(strings.Join(o.Reasons, ""), tt.reason) || o.Backlog != (tt.capacity < offered) {
				t.Errorf("%s: %q, %+v", o.Verdict, o.Reasons, o.Standings)
			}
			if o.Verdict == decide.Inconclusive && (o.Needed != Need{}) {
				t.Errorf("more time is said to help: %+v", o.Needed)
			}
		})
	}
}

// In a pair, both sides have two turns of six windows, each with its own warm-up.
func TestPairsAtARate(t *testing.T) {
	t.Parallel()
	c := newRace(250, 250, Criterion{Metric: measure.LatencyAvg, Margin: 0.02})
	if o := c.run(t); o.Verdict != decide.Pass || len(o.Pairs) != 10 || c.candidate.launches != 10 || c.candidate.windows != 120 || c.baseline.windows != 120 {
		t.Errorf("%s after %d pairs: %q", o.Verdict, len(o.Pairs), o.Reasons)
	}
	six := func(side string) string { return strings.Repeat(side, 6) }
	if got, want := strings.Join(c.took[:48], ""), six("c")+six("b")+six("b")+six("c")+six("b")+six("c")+six("c")+six("b"); got != want {
		t.Errorf("order %s, want %s", got, want)
	}
	// Two servers with the same overload must not pass.
	c = newRace(190, 190, Criterion{Metric: measure.LatencyAvg, Margin: 0.02})
	if o := c.run(t); o.Verdict != decide.Inconclusive || !o.Backlog {
		t.Errorf("both overloaded: %s, %q", o.Verdict, o.Reasons)
	}
	c = newRace(250, 190, Criterion{Metric: measure.LatencyAvg, Margin: 0.02})
	if o := c.run(t); o.Verdict != decide.Fail {
		t.Errorf("the candidate overloaded: %s, %q", o.Verdict, o.Reasons)
	}
}

// At a few requests per second, no request ends in some windows. They have no latency, and the
// other windows decide.
func TestWindowsWithoutARequest(t *testing.T) {
	t.Parallel()
	gap := measure.Window{Duration: 500 * time.Millisecond, Scheduled: 1}
	full := windowOf(1, 0.04, 0, 1)
	of := func(windows ...measure.Window) measure.Measurement { return measure.Measurement{Windows: windows} }
	avg := Criterion{Metric: measure.LatencyAvg, Margin: 0.02}
	for name, tt := range map[string]struct {
		pair Pair
		want bool
	}{
		"one side of each": {Pair{of(full, full, gap), of(full, gap, full)}, true},
		"never both":       {Pair{of(full, gap), of(gap, full)}, false},
		"none at all":      {Pair{of(full, full), of(gap, gap)}, false},
	} {
		if v, ok := avg.value(tt.pair, nil); ok != tt.want || ok && decide.Middle(v.Logs) != 0 {
			t.Errorf("%s: %g, %t", name, v, ok)
		}
	}
	if v, ok := Figure(measure.LatencyAvg, of(gap, full)); !ok || math.Abs(v/0.04-1) > 0.01 {
		t.Errorf("%g s, %t; want 40 ms", v, ok)
	}
}

// In a closed loop, such windows have no throughput either, since the server is slow but not idle.
// At a rate, all windows together have one.
func TestThroughputOfWindowsWithoutARequest(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for name, tt := range map[string]struct {
		windows []measure.Window
		want    float64 // infer/s; 0: unknown
	}{
		"closed loop":          {[]measure.Window{{Duration: second, InFlight: 2}, {Duration: second, InFlight: 2, Requests: 3, Inferences: 3}}, 3},
		"closed loop, none":    {[]measure.Window{{Duration: second, InFlight: 2}}, 0},
		"closed loop, refused": {[]measure.Window{{Duration: second, Errors: 5}, {Duration: second, Errors: 5}}, leastFigure},
		"at a rate":            {[]measure.Window{{Duration: second}, {Duration: second, Scheduled: 4, Requests: 4, Inferences: 4}}, 2},
	} {
		for i := range tt.windows { // by Little's law, 3 infer/s with 2 in flight take 2/3 s each
			if n := tt.windows[i].Requests; n > 0 {
				tt.windows[i].Sub = []measure.SubWindow{{Requests: n, Latency: measure.NewHistogram(slices.Repeat([]time.Duration{second * 2 / 3}, n))}}
			}
		}
		if x, ok := Figure(measure.Throughput, measure.Measurement{Windows: tt.windows}); ok != (tt.want > 0) || ok && math.Abs(x/tt.want-1) > 0.002 {
			t.Errorf("%s: %g infer/s, %t; want %g", name, x, ok, tt.want)
		}
	}
}

// A stall whose answers come in the next window is no backlog. Chance is none either. Requests that
// are never answered are one.
func TestHasBacklog(t *testing.T) {
	t.Parallel()
	pairs := func(scheduled int, answered ...int) []Pair {
		var m measure.Measurement
		for _, n := range answered {
			m.Windows = append(m.Windows, measure.Window{Scheduled: scheduled, Requests: n})
		}
		return slices.Repeat([]Pair{{Candidate: m}}, 10)
	}
	for name, tt := range map[string]struct {
		pairs []Pair
		want  bool
	}{
		"a stall":                  {pairs(1000, 500, 1500), false},
		"a closed loop":            {pairs(0, 1000, 1000), false},
		"0.9 % are left":           {pairs(10000, 9910, 9910), false},
		"1.1 % are left":           {pairs(10000, 9890, 9890), true},
		"2 % of few, as by chance": {pairs(100, 98, 98), false},
		"nothing":                  {nil, false},
	} {
		if got := hasBacklog(tt.pairs); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
