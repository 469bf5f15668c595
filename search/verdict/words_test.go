package verdict

import (
	"slices"
	"strings"
	"testing"

	"tuner/measure"
	"tuner/search"
)

func TestPercentIsRoundedDown(t *testing.T) {
	t.Parallel()
	for p, want := range map[float64]string{
		0: "<1 %", 0.01: "1 %", 0.29: "29 %", 0.9479: "94 %", 0.9499999: "94 %", 0.95: "95 %", 0.99: "99 %", 0.9901: ">99 %", 1: ">99 %",
	} {
		if got := Percent(p); got != want {
			t.Errorf("%g is %q, want %q", p, got, want)
		}
	}
}

func TestChangeText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		value, lo, hi float64
		want          string
	}{
		{-0.28, -0.489, 0.024, "probably 28 % worse (−49 to +2.4)"},
		{-0.123, -0.15, -0.098, "12 % worse (9.8 to 15.0)"},
		{0.027, 0.001, 0.053, "2.7 % better (0.1 to 5.3)"},
		{0.05, -0.01, 0.12, "probably 5.0 % better (−1.0 to +12)"},
		{0.0001, -0.01, 0.01, "the same (−1.0 to +1.0)"},
		{0.5, 0.5, 0.5, "50 % better"},
	} {
		if got := ChangeText(measure.Estimate{Value: test.value, Lo: test.lo, Hi: test.hi}); got != test.want {
			t.Errorf("%v: %q, want %q", test, got, test.want)
		}
	}
}

// A gain is printed as a ratio of the objective's own values: half the latency is 0.5 × the
// default's.
func TestGainText(t *testing.T) {
	t.Parallel()
	words := func(terms ...search.Term) Words {
		return Words{Goal: search.Goal{Objective: search.Objective{Terms: terms}}}
	}
	gain := measure.Estimate{Value: 2, Lo: 1.6, Hi: 2.5}
	for want, w := range map[string]Words{
		"2 × the default's throughput [1.6, 2.5]":                 words(search.Term{Metric: measure.Throughput, Weight: 1}),
		"0.5 × the default's p99 [0.4, 0.625]":                    words(search.Term{Metric: measure.LatencyP99, Weight: 1}),
		"2 × better than the default in the objective [1.6, 2.5]": words(search.Term{Metric: measure.LatencyP99, Weight: 1}, search.Term{Metric: measure.Throughput, Weight: 1}),
	} {
		if got := w.GainText(gain); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestIntervalRepeatsNoUnit(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"31.4 ms [28.4, 34.7]":      Interval(measure.LatencyP99, measure.Estimate{Value: 0.0314, Lo: 0.0284, Hi: 0.0347}),
		"1.05 ms [985 µs, 1.20 ms]": Interval(measure.LatencyP99, measure.Estimate{Value: 0.00105, Lo: 0.000985, Hi: 0.0012}),
		"615.3 infer/s":             Interval(measure.Throughput, measure.Estimate{Value: 615.3, Lo: 615.3, Hi: 615.3}),
		"290 MB":                    Interval(measure.Memory, measure.Estimate{Value: 290e6, Lo: 280e6, Hi: 300e6}),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A limit is printed with enough digits to reach the step.
func TestUpwardsIsNeverBelow(t *testing.T) {
	t.Parallel()
	for _, x := range []float64{0.02143, 0.0214, 0.9999, 1, 123456, 0.00099999} {
		if got := upwards(x); got < x*(1-1e-12) || got > x*1.01 {
			t.Errorf("%g is rounded to %g", x, got)
		}
	}
}

// Each state has a headline that begins with it and names the next action if there is one.
func TestHeadlineNamesTheState(t *testing.T) {
	t.Parallel()
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}}
	answer := &Choice{Holds: 0.83, Gain: &measure.Estimate{Value: 1.1, Lo: 1, Hi: 1.2}, Limits: []Limit{{Probability: 0.83}}}
	for _, test := range []struct {
		verdict        Verdict
		headline, next string
	}{
		{Verdict{State: Unmeasured}, "Nothing was measured", ""},
		{Verdict{State: Nothing, Nearest: answer}, "Nothing satisfies", "loosen the limits"},
		{Verdict{State: Unfinished, More: 1.3, Edge: answer}, "Unfinished: a configuration up to 2.3 × better may exist; a larger --budget", ""},
		{Verdict{State: Unfinished, More: 0.03, IsUnconfirmed: true, Recommended: answer}, "Unfinished: the answer was not measured again on a fresh process; a larger --budget", ""},
		{Verdict{State: Close, Confidence: 0.95, Edge: answer}, "Close to the limit: no measured configuration keeps the limits with a probability of 95 %", "--confidence 0.8 "},
		{Verdict{State: NoGain, Recommended: answer}, "No gain shown: ", ""},
		{Verdict{State: Proven, Recommended: answer}, "Proven: 1.1 × the default's throughput [1, 1.2].", ""},
	} {
		if got := test.verdict.Headline(Words{Goal: goal}); !strings.HasPrefix(got, test.headline) {
			t.Errorf("%s: headline %q", test.verdict.State, got)
		}
		if got := test.verdict.Next(); !strings.Contains(got, test.next) || test.next == "" && got != "" {
			t.Errorf("%s: next %q, want %q", test.verdict.State, got, test.next)
		}
	}
}

// A range of loads is said by the measured loads around it.
func TestSpanIsNamedByTheMeasuredLoads(t *testing.T) {
	t.Parallel()
	at := func(n int) *measure.Load { return &measure.Load{Concurrency: n, BatchSize: 1} }
	for want, s := range map[string]Span{
		" at the measured loads":                                                 {},
		" at the measured loads, from concurrency 9 on":                          {Before: at(9)},
		" at the measured loads, up to concurrency 2":                            {After: at(2)},
		" at the measured loads, up to concurrency 2 and from concurrency 16 on": {After: at(2), Before: at(16)},
	} {
		if got := s.text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Of a range of whole levels, those of the sweep and the ones next to the ends may be tried. Of a
// list, only its own.
func TestLevelsOfASpan(t *testing.T) {
	t.Parallel()
	at := func(n int) *measure.Load { return &measure.Load{Concurrency: n, BatchSize: 1} }
	span := Span{After: at(2), Before: at(9)}
	for _, test := range []struct {
		isRange bool
		span    Span
		want    []float64
	}{
		{true, span, []float64{3, 4, 8}},
		{false, span, []float64{4, 8}},
		{true, Span{Before: at(2)}, []float64{1}},
		{true, Span{Before: at(1)}, nil},
		{false, Span{After: at(16)}, nil},
		{true, Span{After: at(3), Before: at(4)}, nil},
		{true, Span{}, []float64{1, 2, 4, 8, 16}},
	} {
		axis := search.LoadAxis{Levels: []float64{1, 2, 4, 8, 16}, Any: test.isRange, BatchSize: 1}
		if got := test.span.Levels(axis); !slices.Equal(got, test.want) {
			t.Errorf("%+v of a range (%t): %v, want %v", test.span, test.isRange, got, test.want)
		}
	}
}
