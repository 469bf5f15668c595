package perf

import (
	"slices"
	"testing"
	"time"

	"tuner/measure"
)

const ms = time.Millisecond

// window returns a window of one second. Each tenth has the given number of requests of one
// latency.
func window(t *testing.T, latency time.Duration, tenths ...int) measure.Window {
	t.Helper()
	w := measure.Window{Duration: time.Second}
	for i := range 10 {
		n := tenths[i%len(tenths)]
		list := make([]time.Duration, n)
		for j := range list {
			list[j] = latency
		}
		h := measure.NewHistogram(list)
		w.Sub = append(w.Sub, measure.SubWindow{Requests: n, Duration: 100 * ms, Latency: h, Sum: time.Duration(n) * latency})
		w.Requests += n
	}
	w.Inferences = w.Requests
	return w
}

// sequence puts windows one after the other.
func sequence(windows ...measure.Window) []measure.Window {
	var at time.Duration
	for i := range windows {
		windows[i].Start = at
		at += windows[i].Duration
	}
	return windows
}

// repeat returns n equal windows.
func repeat(n int, w measure.Window) []measure.Window {
	var list []measure.Window
	for range n {
		list = append(list, w)
	}
	return sequence(list...)
}

func TestPrecisionRule(t *testing.T) {
	t.Parallel()
	even := window(t, 5*ms, 100)
	var drifting []measure.Window // 50 to 120 requests in each tenth
	for i := range 8 {
		drifting = append(drifting, window(t, 5*ms, 50+10*i))
	}
	drifting = sequence(drifting...)
	s := Settings{Mode: ModeConcurrency, Stop: Stop{Rule: RulePrecision, Precision: 0.02, Budget: 8 * time.Second}}
	limited, rated := s, s
	limited.LatencyLimit = 4 * ms
	rated.Mode = ModeRate
	for name, c := range map[string]struct {
		s       Settings
		windows []measure.Window
		verdict Verdict
		done    bool
	}{
		"too few windows": {s, repeat(4, even), VerdictBudget, false},
		"precise":         {s, repeat(5, even), VerdictPrecise, true},
		"not precise":     {s, drifting[:7], VerdictBudget, false},
		"budget used up":  {s, drifting, VerdictBudget, true},
		// the schedule sets the rate, and the latency is constant
		"open loop":               {rated, drifting[:5], VerdictPrecise, true},
		"over the limit":          {limited, drifting[:5], VerdictOverLimit, true},
		"over the limit too soon": {limited, drifting[:4], VerdictBudget, false},
		"nothing answered":        {s, repeat(8, window(t, 0, 0)), VerdictBudget, true},
	} {
		if verdict, done := c.s.judge(c.windows); verdict != c.verdict || done != c.done {
			t.Errorf("%s: %s, done %v; want %s, %v", name, verdict, done, c.verdict, c.done)
		}
	}
}

func TestStabilityRule(t *testing.T) {
	t.Parallel()
	s := Settings{Stop: Stop{Rule: RuleStability, Stability: 0.1, Trials: 4}}
	async, limited, short := s, s, s
	async.Async = true
	limited.LatencyLimit = 4 * ms
	short.Stop.Trials = 2
	fast, slow, slower := window(t, 5*ms, 100), window(t, 5*ms, 91), window(t, 5*ms, 90)
	late, silent := window(t, 6*ms, 100), window(t, 0, 0)
	for name, c := range map[string]struct {
		s       Settings
		windows []measure.Window
		verdict Verdict
		done    bool
	}{
		"too few":                    {s, sequence(fast, fast), VerdictUnjudged, false},
		"three agree":                {s, sequence(fast, slow, fast), VerdictStable, true}, // 100/91 ≤ 1.1
		"throughput differs":         {s, sequence(fast, slower, fast), VerdictUnstable, false},
		"latency differs":            {s, sequence(fast, late, fast), VerdictUnstable, false}, // 6/5 > 1.1
		"the last three agree":       {s, sequence(late, fast, fast, fast), VerdictStable, true},
		"no more trials":             {s, sequence(fast, late, fast, fast), VerdictUnstable, true},
		"asynchronous":               {async, sequence(fast, late, fast, fast), VerdictStable, true},
		"asynchronous, not the last": {async, sequence(fast, late, fast), VerdictUnstable, false},
		"over the limit":             {limited, sequence(fast, slower, fast), VerdictOverLimit, true},
		"fewer trials than it takes": {short, sequence(fast, fast), VerdictUnjudged, true},
		"nothing answered":           {s, sequence(silent, silent, silent), VerdictUnstable, false},
	} {
		if verdict, done := c.s.judge(c.windows); verdict != c.verdict || done != c.done {
			t.Errorf("%s: %s, done %v; want %s, %v", name, verdict, done, c.verdict, c.done)
		}
	}
	if n := len(s.counting(repeat(5, fast))); n != 3 {
		t.Errorf("%d windows count, want the last 3", n)
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	s := Settings{LatencyLimit: 10 * ms}
	// mean 9 ms, wide
	mixed := sequence(window(t, 4*ms, 100), window(t, 14*ms, 100), window(t, 4*ms, 100), window(t, 14*ms, 100))
	// mean 11 ms, wide
	above := sequence(window(t, 8*ms, 100), window(t, 14*ms, 100), window(t, 8*ms, 100), window(t, 14*ms, 100))
	// 1,000 of the requests of a window are answered, in 9 ms
	with := func(failed, dropped int) []measure.Window {
		w := window(t, 9*ms, 100)
		w.Errors, w.Dropped, w.Scheduled = failed, dropped, w.Requests+failed+dropped
		return repeat(3, w)
	}
	for name, c := range map[string]struct {
		windows []measure.Window
		want    Limit
	}{
		"few dropped":   {with(5, 5), LimitMet}, // 10 of 1,010
		"more dropped":  {with(0, 11), LimitMissed},
		"more failed":   {with(11, 0), LimitMissed},
		"met":           {repeat(3, window(t, 9*ms, 100)), LimitMet},
		"missed":        {repeat(3, window(t, 11*ms, 100)), LimitMissed},
		"likely met":    {mixed, LimitLikelyMet},
		"likely missed": {above, LimitLikelyMissed},
		"unknown":       {repeat(3, window(t, 0, 0)), ""},
	} {
		if got := s.limitOf(measure.Measurement{Windows: c.windows}); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	s.Percentile = 99
	// 20 do not bound it from above
	if got := s.limitOf(measure.Measurement{Windows: repeat(1, window(t, 9*ms, 2))}); got != LimitLikelyMet {
		t.Errorf("p99 of 20 requests: %q", got)
	}
}

func TestWindowLength(t *testing.T) {
	t.Parallel()
	open := Stop{Budget: 30 * time.Second}
	for _, c := range []struct {
		stop      Stop
		p99, want time.Duration
	}{
		{open, 5 * ms, time.Second},
		{open, 300 * ms, 3 * time.Second},
		// otherwise there would be fewer than five windows
		{open, 2 * time.Second, 6 * time.Second},
		{Stop{Budget: 2 * time.Second}, 5 * ms, 400 * ms},
		{Stop{Window: 5 * time.Second}, time.Second, 5 * time.Second},
	} {
		if got := c.stop.windowLength(c.p99); got != c.want {
			t.Errorf("%+v, p99 %v: %v, want %v", c.stop, c.p99, got, c.want)
		}
	}
}

// Budget ends a window whose requests would take longer.
func TestBudgetOfCountedWindows(t *testing.T) {
	t.Parallel()
	var o Options
	o.Stop = Stop{Rule: RulePrecision, Budget: 7 * time.Second, Requests: 1000}
	level := trial{options: &o}
	if got := level.loadOptions(nil); got.Budget != 7*time.Second || got.Requests != 1000 {
		t.Errorf("windows of %d requests, for %v in all; want 1000 and 7 s", got.Requests, got.Budget)
	}
	o.Stop.Rule = RuleStability // the budget does not apply
	if got := level.loadOptions(nil).Budget; got != 0 {
		t.Errorf("a budget of %v under the rule of stability", got)
	}
}

// A neighbour takes three tenths of the middle one of three windows. As measured they differ by 40
// %, after correction by nothing. If the neighbour is unknown, they differ. At a request rate only
// latencies are corrected.
func TestStabilityTakesOthersOut(t *testing.T) {
	t.Parallel()
	quiet, beside := window(t, 7*ms, 100), window(t, 10*ms, 70)
	unknown := beside
	beside.Cores, beside.Foreign, beside.EngineCPU = 2, 0.3, 1400*ms
	s := Settings{Mode: ModeConcurrency, Stop: Stop{Rule: RuleStability, Stability: 0.1, Trials: 10}}
	check := func(name string, s Settings, middle measure.Window, wantRate, wantLatency bool) {
		t.Helper()
		rate, latency := s.agree(sequence(quiet, middle, quiet))
		if rate != wantRate || latency != wantLatency {
			t.Errorf("%s: agree in rate %t, in latency %t", name, rate, latency)
		}
	}
	check("taken out", s, beside, true, true)
	check("unknown", s, unknown, false, false)
	s.Mode = ModeRate
	check("at a rate", s, beside, false, true)
	if got := s.disturbance(measure.Measurement{Windows: []measure.Window{quiet, beside}}); got !=
		"Other processes took 15 % of the CPU time on average (up to 30 %); windows are compared as if it had been the average, and figures are as measured." {
		t.Error(got)
	}
	if got := s.disturbance(measure.Measurement{Windows: []measure.Window{quiet, unknown}}); got != "" {
		t.Error(got)
	}
}

// Without others, figures do not change, not even in the last digit.
func TestNothingIsEvenedWithoutOthers(t *testing.T) {
	t.Parallel()
	figures := []float64{3.1, 2.9, 7}
	if got := evened(repeat(3, window(t, ms, 5)), figures, -1); !slices.Equal(got, figures) {
		t.Errorf("%v of %v", got, figures)
	}
}
