package figures

import (
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/analyze/bottleneck"
	"tuner/measure"
	"tuner/report/reporttest"
	"tuner/search"
	"tuner/search/verdict"
)

// The text about a bottleneck has the figures that show it.
func TestBottleneckTexts(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	check := func(bottleneck bottleneck.Kind, want string, change func(*bottleneck.Breakdown, *analyze.Config)) {
		t.Helper()
		s, c := r.Explanation.Subjects[0], r.Configs[0]
		breakdown, point := *s.Breakdown, *c.Best
		s.Bottleneck, s.Breakdown, c.Best = bottleneck, &breakdown, &point
		change(&breakdown, &c)
		if got := bottleneckText(r, s, c) + " " + adviceText(r, s, c); !strings.Contains(got, want) {
			t.Errorf("%s: %q is missing in %q", bottleneck, want, got)
		}
	}
	nothing := func(*bottleneck.Breakdown, *analyze.Config) {}
	check(bottleneck.Compute, "The 2 cores are busy", nothing)
	check(bottleneck.Compute, "1.0 of 2 cores are idle", func(b *bottleneck.Breakdown, _ *analyze.Config) { b.EngineCPU = 0.95 })
	check(bottleneck.Compute, "The GPU computes for 97 % of the time", func(b *bottleneck.Breakdown, _ *analyze.Config) { b.GPU = 0.97 })
	check(bottleneck.Queue, "delay a request by 2.00 ms", func(_ *bottleneck.Breakdown, c *analyze.Config) { c.Setup.QueueDelay = 2e6 })
	check(bottleneck.Queue, "Requests arrive unevenly", nothing)
	check(bottleneck.Client, "Client, wire and front end limit it", nothing)
	check(bottleneck.Client, "The client limits it: the load generator was short of CPU", func(_ *bottleneck.Breakdown, c *analyze.Config) {
		c.Best.Flags = []measure.Flag{measure.FlagClientCPU}
	})
	check(bottleneck.Load, "Nothing is saturated: 0.50 of 2 instances are", func(b *bottleneck.Breakdown, _ *analyze.Config) { b.Busy = 0.5 })
	check(bottleneck.Unknown, "statistics are missing", nothing)
}

// Where nothing satisfies the limits although no figure misses one, the answer and its explanation say why: each limit is
// kept with 70 % and both with 49 %, or the only configuration does not start again.
func TestNothingSatisfiesWithoutAMissedLimit(t *testing.T) {
	t.Parallel()
	one := func() *analyzetest.Builder {
		return analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4).End("the space is exhausted", false)
	}
	check := func(r analyze.Result, limits, nearest, why string) {
		t.Helper()
		if got := MissedText(r); got != limits {
			t.Errorf("nothing satisfies %q, want %q", got, limits)
		}
		if got := AnswerOf(r).Lines[0].String(); !strings.HasPrefix(got, "Nearest: default") || !strings.Contains(got, nearest) {
			t.Errorf("%q, want a nearest with %q", got, nearest)
		}
		why = "At concurrency 4 " + why
		if s := Explanation(r)[0]; s.Title != "Nearest to the constraints: default" || len(s.Lines) != 1 || !strings.HasPrefix(s.Lines[0], why) {
			t.Errorf("%s: %q, want %q", s.Title, s.Lines, why)
		}
	}
	point := *reporttest.Ranked(t, one(), analyze.Options{}).Configs[0].Best
	goal := analyzetest.Narrow(t, point, 0.703, measure.LatencyAvg, measure.Throughput) // 0.703² is 0.494
	both := verdict.ConstraintText(goal.Constraints[0]) + ", " + verdict.ConstraintText(goal.Constraints[1])
	check(reporttest.Ranked(t, one(), analyze.Options{Goal: goal}), both, "kept: 49 %", "its limits are kept together with a probability of 49 %")
	check(reporttest.Ranked(t, one().FailFinal(search.Candidate{}, 4), analyze.Options{}), "p99 ≤ 50 ms", "; its fresh processes failed.", "its fresh processes failed.")
}

// A default that does not start again is no answer, also where it alone is reported.
func TestBrokenAloneIsNoAnswer(t *testing.T) {
	t.Parallel()
	other := analyzetest.Candidate(2, 1, 16)
	r, _ := reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4).Measure(other, 16).
		FailFinal(search.Candidate{}, 4).Confirm(other, 16), analyze.Options{}).Only(nil)
	if a := AnswerOf(r); len(r.Configs) != 1 || a.State != verdict.Nothing || a.Lines[0].Name != verdict.LineNearest {
		t.Errorf("of %d configurations: %s; %s", len(r.Configs), a.Headline, a.Lines[0])
	}
}
