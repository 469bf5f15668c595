package gate

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tuner/gate/decide"
	"tuner/measure"
	"tuner/runner"
	"tuner/spec"
)

// bench records the events in order.
type bench struct{ took []string }

// fake is an engine with windows of half a second and launches of two.
type fake struct {
	bench   *bench
	name    string
	window  func(n int) measure.Window // returns the n-th window, from 0
	memory  int64
	failure *measure.Failure // of every window
	err     error
	stop    func() // called in every window, if set
	hangsIn int    // number of the launch that never ends; 0: none

	windows, launches, closed int
	running                   bool
}

func (f *fake) Measure(ctx context.Context, job runner.Job) (measure.Measurement, error) {
	f.running = true
	if job.Fresh {
		f.launches++
		time.Sleep(2 * time.Second)
		if f.launches == f.hangsIn {
			<-ctx.Done()
			return measure.Measurement{}, context.Cause(ctx)
		}
	}
	m := measure.Measurement{Memory: f.memory, Launch: f.launches}
	for range job.Windows {
		time.Sleep(500 * time.Millisecond)
		f.bench.took = append(f.bench.took, f.name)
		if f.stop != nil {
			f.stop()
		}
		if f.err != nil || f.failure != nil {
			return measure.Measurement{Failure: f.failure}, f.err
		}
		if ctx.Err() != nil {
			return measure.Measurement{}, context.Cause(ctx)
		}
		m.Windows = append(m.Windows, f.window(f.windows))
		f.windows++
	}
	return m, nil
}

func (f *fake) Pause() { f.running = false }

func (f *fake) Close(context.Context) { f.closed, f.running = f.closed+1, false }

// steady yields windows of 100 s whose throughput alternates around a rate.
func steady(rate, noise float64) func(n int) measure.Window {
	return func(n int) measure.Window {
		inferences := int(100 * rate * (1 + noise*math.Sin(float64(7*n))))
		return measure.Window{Duration: 100 * time.Second, Requests: inferences, Inferences: inferences}
	}
}

// constant always yields the same window.
func constant(w measure.Window) func(int) measure.Window {
	return func(int) measure.Window { return w }
}

// windowOf makes a window with a throughput and latencies. A share of the requests is slower by a
// factor.
func windowOf(rate, latency, share, factor float64) measure.Window {
	const requests = 1000
	latencies := make([]time.Duration, requests)
	for i := range latencies {
		latencies[i] = time.Duration(latency * 1e9)
		if i < int(share*requests) {
			latencies[i] = time.Duration(factor * latency * 1e9)
		}
	}
	h := measure.NewHistogram(latencies)
	return measure.Window{Duration: 100 * time.Second, Requests: int(100 * rate), Inferences: int(100 * rate),
		Sub: []measure.SubWindow{{Requests: requests, Latency: h}}}
}

// contest is a gate between two fakes.
type contest struct {
	Gate
	baseline, candidate *fake
	*bench
}

func newContest(criteria ...Criterion) *contest {
	b := new(bench)
	c := &contest{bench: b, baseline: &fake{bench: b, name: "b", window: steady(200, 0.01), memory: 1e8}, candidate: &fake{bench: b, name: "c", window: steady(200, 0.01), memory: 1e8}}
	c.Gate = Gate{Baseline: &Side{Engine: c.baseline}, Candidate: Side{Engine: c.candidate}, Criteria: criteria, Budget: time.Hour, Now: time.Now}
	return c
}

// run runs the gate on a fake clock.
func (c *contest) run(t *testing.T) Outcome {
	t.Helper()
	var o Outcome
	var err error
	synctest.Test(t, func(t *testing.T) { o, err = c.Run(t.Context()) })
	if err != nil {
		t.Fatal(err)
	}
	if c.candidate.running || c.baseline.running {
		t.Error("an engine is left running")
	}
	return o
}

// throughput returns a criterion with a margin of 2 %.
func throughput() Criterion { return Criterion{Metric: measure.Throughput, Margin: 0.02} }

func TestGateTakesTurns(t *testing.T) {
	t.Parallel()
	c := newContest(throughput())
	o := c.run(t)
	if o.Verdict != decide.Pass || len(o.Pairs) != 10 || o.Looks != 1 || len(o.Reasons) != 0 {
		t.Fatalf("%s after %d pairs, %d looks: %q", o.Verdict, len(o.Pairs), o.Looks, o.Reasons)
	}
	for _, f := range []*fake{c.candidate, c.baseline} {
		if f.launches != 10 || f.windows != 120 || f.closed != 10 {
			t.Errorf("%s: %d launches, %d windows, closed %d times; want one of each pair and 12 windows", f.name, f.launches, f.windows, f.closed)
		}
	}
	// The first pair has c b, b c, c b …; the second has the opposite order.
	if got, want := strings.Join(c.took[:48], ""), strings.Repeat("cbbc", 6)+strings.Repeat("bccb", 6); got != want {
		t.Errorf("order %s, want %s", got, want)
	}
	if want := 160 * time.Second; o.Elapsed != want { // 10 pairs of 2 launches and 24 windows
		t.Errorf("took %v, want %v", o.Elapsed, want)
	}
}

// In a closed loop, a window's throughput comes from Little's law, so requests that end at its
// edges do not matter. In an open loop, and if requests failed, finished requests are counted.
func TestThroughputOfAWindow(t *testing.T) {
	t.Parallel()
	w := windowOf(200, 0.04, 0, 1)
	check := func(name string, want float64) {
		t.Helper()
		if x, ok := Figure(measure.Throughput, measure.Measurement{Windows: []measure.Window{w}}); !ok || math.Abs(x/want-1) > 0.002 {
			t.Errorf("%s: %.1f infer/s, %t; want %.1f", name, x, ok, want)
		}
	}
	check("of an old file", 200)
	w.InFlight = 8.4
	check("8.4 in flight for 40 ms", 210)
	w.Inferences *= 2
	check("in batches of two", 420)
	w.Errors = 1
	check("with an error", 400)
	w.Errors, w.Scheduled = 0, 20000
	check("scheduled", 400)
	for _, m := range []measure.Metric{measure.Throughput, measure.Memory, measure.LatencyP99} {
		if x, ok := Figure(m, measure.Measurement{Memory: 1e8}); ok {
			t.Errorf("without a window %s is %g", m, x)
		}
	}
}

func TestGateFailsARegression(t *testing.T) {
	t.Parallel()
	c := newContest(throughput())
	c.candidate.window = steady(190, 0.01)
	o := c.run(t)
	if o.Verdict != decide.Fail || len(o.Reasons) != 1 || !strings.HasPrefix(o.Reasons[0], "throughput differs by -5.0 % (-") ||
		!strings.HasSuffix(o.Reasons[0], "2 % lower is allowed") {
		t.Errorf("%s: %q", o.Verdict, o.Reasons)
	}
}

// Two per cent of the requests take five times as long. Throughput and mean hardly change, p99
// does.
func TestGateFindsASlowTail(t *testing.T) {
	t.Parallel()
	c := newContest(throughput(), Criterion{Metric: measure.LatencyP99, Margin: 0.1})
	c.baseline.window = constant(windowOf(200, 0.04, 0, 1))
	c.candidate.window = constant(windowOf(199, 0.04, 0.02, 5))
	o := c.run(t)
	if o.Verdict != decide.Fail || o.Standings[0].Verdict != decide.Pass || o.Standings[1].Verdict != decide.Fail || !strings.Contains(o.Reasons[0], "latency_p99 differs by +400 %") {
		t.Errorf("%s: %q, %+v", o.Verdict, o.Reasons, o.Standings)
	}
}

func TestGateOfLimits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		criterion Criterion
		want      decide.Verdict
		reason    string
	}{
		"kept":             {Criterion{Metric: measure.Memory, Bound: 2e8}, decide.Pass, ""},
		"exactly":          {Criterion{Metric: measure.Memory, Bound: 1e8}, decide.Pass, ""},
		"exceeded":         {Criterion{Metric: measure.Memory, Bound: 9e7}, decide.Fail, "memory is 100 MB (100 MB to 100 MB): at most 90 MB is allowed"},
		"least, kept":      {Criterion{Metric: measure.Throughput, Bound: 150, Min: true}, decide.Pass, ""},
		"least, missed":    {Criterion{Metric: measure.Throughput, Bound: 300, Min: true}, decide.Fail, "at least 300.0 infer/s is allowed"},
		"latency exceeded": {Criterion{Metric: measure.LatencyP99, Bound: 0.03}, decide.Fail, "at most 30.0 ms is allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newContest(tt.criterion)
			c.Gate.Baseline, c.candidate.window = nil, constant(windowOf(200, 0.04, 0.01, 2))
			o := c.run(t)
			if o.Verdict != tt.want || !strings.Contains(strings.Join(o.Reasons, ""), tt.reason) {
				t.Errorf("%s: %q, %+v", o.Verdict, o.Reasons, o.Standings)
			}
			if c.baseline.windows != 0 {
				t.Error("a baseline was measured")
			}
		})
	}
}

// A gate without time for ten pairs looks once, at the pairs that it can afford. One without time
// for five reports the time that it needs.
func TestGateKeepsItsBudget(t *testing.T) {
	t.Parallel()
	c := newContest(throughput())
	c.Budget = 115 * time.Second // a pair takes 16 s: 7
	if o := c.run(t); o.Verdict != decide.Pass || len(o.Pairs) != 7 || o.Elapsed > c.Budget {
		t.Errorf("%s after %d pairs and %v", o.Verdict, len(o.Pairs), o.Elapsed)
	}
	c = newContest(throughput())
	c.Budget = 50 * time.Second
	o := c.run(t)
	if o.Verdict != decide.Inconclusive || len(o.Pairs) != 1 || o.Needed != (Need{Time: 160 * time.Second}) ||
		!slices.Contains(o.Reasons, "the budget of 50s is enough for 3 pairs of 16s, but a look needs at least 5") {
		t.Errorf("%s after %d pairs, %v needed: %q", o.Verdict, len(o.Pairs), o.Needed, o.Reasons)
	}
	// Pairs that become slower must not exceed the budget.
	c = newContest(throughput())
	c.Budget = 100 * time.Second
	c.candidate.stop = func() { time.Sleep(time.Duration(c.candidate.windows) * time.Second / 20) }
	if o := c.run(t); o.Verdict != decide.Inconclusive || o.Elapsed > c.Budget+30*time.Second || !strings.HasPrefix(o.Reasons[0], "the budget of 1m40s is used after ") {
		t.Errorf("%s after %v: %q", o.Verdict, o.Elapsed, o.Reasons)
	}
	// The first pair of 16 s lets six fit into 97 s. If the others take 0.4 s longer, the sixth
	// does not. Five are enough for the look.
	for rate, want := range map[float64]decide.Verdict{200: decide.Pass, 150: decide.Fail} {
		c = newContest(throughput())
		c.Budget, c.candidate.window = 97*time.Second, steady(rate, 0.01)
		c.candidate.stop = func() {
			if c.candidate.launches > 1 {
				time.Sleep(35 * time.Millisecond)
			}
		}
		if o := c.run(t); o.Verdict != want || len(o.Pairs) != 5 || o.Looks != 1 || (len(o.Reasons) > 0) != (want == decide.Fail) {
			t.Errorf("%s after %d pairs, %d looks: %q", o.Verdict, len(o.Pairs), o.Looks, o.Reasons)
		}
	}
	// A pair that hangs in a window or in a launch is stopped.
	hangs := map[string]func(*contest){
		"a window": func(c *contest) {
			c.candidate.stop = func() {
				if c.candidate.windows == 26 { // in the third pair
					time.Sleep(100 * time.Second)
				}
			}
		},
		"a launch": func(c *contest) { c.baseline.hangsIn = 3 },
	}
	for name, hang := range hangs {
		c = newContest(throughput())
		c.Budget = 100 * time.Second
		hang(c)
		if o := c.run(t); o.Verdict != decide.Inconclusive || len(o.Pairs) != 2 || o.Elapsed > 145*time.Second || o.Reasons[0] != "the budget of 1m40s is used after 2 pairs" {
			t.Errorf("%s hangs: %s after %d pairs and %v: %q", name, o.Verdict, len(o.Pairs), o.Elapsed, o.Reasons)
			// 10 pairs that did not hang, and one more
		} else if want := (Need{Time: 11 * 16 * time.Second}); o.Needed != want {
			t.Errorf("%s hangs: %+v needed, want %+v", name, o.Needed, want)
		}
	}
}

// If nothing is proven, the reasons name the open criteria and the time that they need.
func TestInconclusiveGate(t *testing.T) {
	t.Parallel()
	c := newContest(throughput())
	c.candidate.window, c.Budget = steady(203, 0.4), 200*time.Second
	o := c.run(t)
	if o.Verdict != decide.Inconclusive || o.Looks != 1 || o.Reasons[0] != "nothing is proven after 10 pairs" ||
		!strings.HasPrefix(o.Reasons[1], "throughput differs by -6.7 % to ") || o.Needed.Time <= o.Elapsed {
		t.Errorf("%s, %d looks, %v needed: %q", o.Verdict, o.Looks, o.Needed, o.Reasons)
	}
}

// Ten pairs of throughputs that alternate by 4 % have the standard error 0.04·√(10/9)/(0.8·√10) =
// 0.0167. Six looks pass beyond 2.453 of them. The tolerance is 0.0202 away, which takes
// 10·(2.453·0.0167/0.0202)² = 41 pairs: the fifth look. At twice the noise it takes 164, a look
// after 170. There are never more than 60, so windows must be 170/60 times as long as the fake's
// 100 s.
func TestWhatADecisionNeeds(t *testing.T) {
	t.Parallel()
	for noise, want := range map[float64]Need{
		0.04: {Time: 55 * 16 * time.Second},
		0.08: {Time: 187 * 16 * time.Second, Window: 283400 * time.Millisecond},
		0.3:  {}, // it would take hours
	} {
		c := newContest(throughput())
		c.Budget = 17 * 16 * time.Second // time for one look
		c.candidate.window = func(n int) measure.Window {
			return steady(200*math.Exp(noise*float64(1-2*(n/decide.WindowsPerPair%2))), 0)(n)
		}
		c.baseline.window = steady(200, 0)
		if o := c.run(t); o.Verdict != decide.Inconclusive || len(o.Pairs) != 10 || o.Needed != want {
			t.Errorf("noise %g: %s after %d pairs, %+v needed, want %+v; %+v", noise, o.Verdict, len(o.Pairs), o.Needed, want, o.Standings)
		}
	}
}

func TestFailuresAreVerdicts(t *testing.T) {
	t.Parallel()
	crash := &measure.Failure{Stage: measure.StageCrash, Reason: "it ended;\nlast words"}
	c := newContest(throughput())
	c.candidate.failure = crash
	if o := c.run(t); o.Verdict != decide.Fail || o.Reasons[0] != "the candidate failed: crash: it ended; last words" || len(o.Pairs) != 1 {
		t.Errorf("candidate: %s, %q", o.Verdict, o.Reasons)
	}
	c = newContest(throughput())
	c.baseline.failure = crash
	if o := c.run(t); o.Verdict != decide.Inconclusive || !o.Timeless || o.Needed != (Need{}) || o.Reasons[0] != "the baseline failed: crash: it ended; last words" {
		t.Errorf("baseline: %s, %q", o.Verdict, o.Reasons)
	}
	c = newContest(throughput())
	c.candidate.window = func(n int) measure.Window {
		w := steady(200, 0)(n)
		w.Errors, w.FirstError = w.Requests/20, "no such input"
		return w
	}
	if o := c.run(t); o.Verdict != decide.Fail || o.Reasons[0] != "4.8 % of the candidate's requests failed, the first with: no such input" {
		t.Errorf("errors: %s, %q", o.Verdict, o.Reasons)
	}
	c = newContest(throughput())
	c.candidate.window = constant(measure.Window{Duration: time.Second, Scheduled: 100, Requests: 90, Inferences: 90, Dropped: 10})
	if o := c.run(t); o.Verdict != decide.Fail || o.Reasons[0] != "10.0 % of the candidate's requests failed, the first with: it was not sent, since too many were unanswered" {
		t.Errorf("dropped: %s, %q", o.Verdict, o.Reasons)
	}
	c = newContest(throughput())
	c.baseline.window = func(n int) measure.Window {
		w := steady(200, 0)(n)
		w.Errors, w.FirstError = w.Requests/20, "the queue is full"
		return w
	}
	if o := c.run(t); o.Verdict != decide.Inconclusive || !o.Timeless || o.Reasons[0] != "4.8 % of the baseline's requests failed, the first with: the queue is full" {
		t.Errorf("errors of the baseline: %s, %q", o.Verdict, o.Reasons)
	}
	c = newContest(Criterion{Metric: measure.Energy, Margin: 0.02})
	if o := c.run(t); o.Verdict != decide.Inconclusive || !o.Timeless || o.Reasons[0] != "energy cannot be judged: it was not measured" {
		t.Errorf("unknown metric: %s, %q", o.Verdict, o.Reasons)
	}
}

func TestGateEndsWithTheEnginesError(t *testing.T) {
	t.Parallel()
	broken := errors.New("no space left")
	c := newContest(throughput())
	c.baseline.err = broken
	synctest.Test(t, func(t *testing.T) {
		if _, err := c.Run(t.Context()); !errors.Is(err, broken) || c.baseline.closed != 1 || c.candidate.closed != 1 {
			t.Errorf("%v, closed %d and %d times", err, c.baseline.closed, c.candidate.closed)
		}
	})
}

// Ctrl-C drops the current pair and keeps the finished ones.
func TestInterruptedGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := newContest(throughput())
		c.candidate.stop = func() {
			if c.candidate.windows == 26 { // in the third pair
				cancel()
			}
		}
		o, err := c.Run(ctx)
		if err != nil || !o.Interrupted || o.Verdict != decide.Inconclusive || len(o.Pairs) != 2 || o.Reasons[0] != "interrupted after 2 pairs" {
			t.Errorf("%v, %+v", err, o)
		}
	})
}

// Without criteria, the candidate is measured to save a baseline.
func TestMeasuringForABaseline(t *testing.T) {
	t.Parallel()
	c := newContest()
	c.Gate.Baseline = nil
	if o := c.run(t); o.Verdict != decide.Pass || len(o.Pairs) != 10 || o.Standings != nil {
		t.Errorf("%s after %d pairs", o.Verdict, len(o.Pairs))
	}
	// Three launches are too few for a baseline, and the message says how many are enough.
	c = newContest()
	c.Gate.Baseline, c.Budget = nil, 30*time.Second
	if o := c.run(t); o.Verdict != decide.Inconclusive || o.Reasons[0] != "the budget of 30s is enough for 3 pairs of 8s, but a baseline needs at least 5" || o.Needed.Time != 80*time.Second {
		t.Errorf("little time: %s, %q, %+v needed", o.Verdict, o.Reasons, o.Needed)
	}
	// Seven pairs of 8 s fit into 60 s. If they take 9.2 s from the third on, the budget is used after six. If one
	// hangs, it is used after those before it. Five are enough for a baseline.
	for _, tt := range []struct {
		from  int           // number of a window, from 0; a pair has twelve
		by    time.Duration // it and all later ones take so much longer
		pairs int
		want  decide.Verdict
	}{{24, 100 * time.Millisecond, 6, decide.Pass}, {60, 100 * time.Second, 5, decide.Pass}, {48, 100 * time.Second, 4, decide.Inconclusive}} {
		c := newContest()
		c.Gate.Baseline, c.Budget = nil, time.Minute
		c.candidate.stop = func() {
			if c.candidate.windows >= tt.from {
				time.Sleep(tt.by)
			}
		}
		o := c.run(t)
		if isPass := tt.want == decide.Pass; o.Verdict != tt.want || len(o.Pairs) != tt.pairs || (o.Unfit() == "") != isPass || (len(o.Reasons) == 0) != isPass {
			t.Errorf("slow from window %d: %s after %d pairs, %q, unfit as a baseline: %q", tt.from, o.Verdict, len(o.Pairs), o.Reasons, o.Unfit())
		}
	}
	c = newRace(0, 190)
	if o := c.run(t); o.Verdict != decide.Inconclusive || !o.Backlog {
		t.Errorf("a rate that is too high: %s, %q", o.Verdict, o.Reasons)
	}
}

// A saved baseline has 200 infer/s with a spread of 1 %. 10 % less fails. The same throughput
// passes only if the margin exceeds the difference between jobs.
func TestGateAgainstASavedBaseline(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rate, margin float64
		want         decide.Verdict
	}{{180, 0.02, decide.Fail}, {200, 0.02, decide.Inconclusive}, {200, 0.1, decide.Pass}} {
		c := newContest(Criterion{Metric: measure.Throughput, Margin: tt.margin})
		c.Gate.Baseline, c.Reference = nil, map[measure.Metric]Reference{measure.Throughput: {Log: math.Log(200), Spread: 0.01}}
		c.candidate.window = steady(tt.rate, 0.005)
		o := c.run(t)
		if o.Verdict != tt.want {
			t.Errorf("%g infer/s, margin %g: %s, %+v", tt.rate, tt.margin, o.Verdict, o.Standings)
		}
		const why = "throughput: jobs on this machine differ by 1.0 %, so no single job can prove that it is at most 2 % lower"
		if tt.want == decide.Inconclusive && (!o.Timeless || !strings.Contains(strings.Join(o.Reasons, "\n"), why)) {
			t.Errorf("%q, want %q", o.Reasons, why)
		}
	}
}

func TestCriteria(t *testing.T) {
	t.Parallel()
	least, most := 100.0, 0.03
	g, err := spec.ParseGate("g.yaml", []byte("baseline: b\ncandidate: c\nmetrics: [throughput, {name: latency_p99, margin: 5%}]\nlimits: {throughput: {min: 100}, latency_p99: {max: 30ms}}"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Criterion{{Metric: measure.Throughput, Margin: 0.02}, {Metric: measure.LatencyP99, Margin: 0.05},
		{Metric: measure.Throughput, Bound: least, Min: true}, {Metric: measure.LatencyP99, Bound: most}}
	if got := Criteria(g); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	// 2 % less throughput is ln(1/0.98) worse, 5 % more latency ln 1.05. The shown changes are
	// those of the metric.
	for i, tolerated := range []float64{-math.Log(0.98), math.Log(1.05), 0, 0} {
		if got := want[i].tolerated(); math.Abs(got-tolerated) > 1e-12 {
			t.Errorf("%+v tolerates %g, want %g", want[i], got, tolerated)
		}
	}
	change := want[0].Change(decide.Standing{Value: -math.Log(0.95), Lo: -math.Log(0.96), Hi: -math.Log(0.94)})
	if math.Abs(change.Value+0.05) > 1e-9 || math.Abs(change.Lo+0.06) > 1e-9 || math.Abs(change.Hi+0.04) > 1e-9 {
		t.Errorf("5 %% less (4 to 6) is shown as %+v", change)
	}
	if got := want[3].Tolerated(); got != "at most 30.0 ms" {
		t.Errorf("%q", got)
	}
}

func TestPercent(t *testing.T) {
	t.Parallel()
	for want, share := range map[string]float64{"+4.8 %": 0.048, "-0.1 %": -0.0012, "0.0 %": -0.0001, "+400 %": 4, "unknown": math.Inf(1)} {
		if got := Percent(share); got != want {
			t.Errorf("%g is %q, want %q", share, got, want)
		}
	}
}
