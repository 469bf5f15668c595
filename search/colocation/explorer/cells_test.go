package explorer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/colocation"
	"tuner/search/standings"
)

// The leader is first measured at the highest level that it surely keeps. Later trials are at most one level above
// that, and at most at the level that is nearest to its most likely scale. So a trial decides on the next answer, on
// axes of any steps.
func TestTheLeaderIsMeasuredWhereTheAnswerMayRise(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var axis search.LoadAxis
		step := math.Exp2(1 / float64(1+r.IntN(64)))
		for level := 0.25; level <= 8; level *= step {
			axis.Levels = append(axis.Levels, level)
		}
		sure := math.Exp2(-3 + 7*r.Float64())
		likely := sure * math.Exp(0.3*r.Float64())
		highest := axis.AtMost(sure)
		if got := leading(axis, sure, likely, nil); got != highest {
			t.Errorf("seed %d: the first trial is at %v, want %v", seed, got, highest)
		}
		level := leading(axis, sure, likely, []standings.Point{{Level: axis.First()}, {Level: highest}})
		at, from := slices.Index(axis.Levels, level), slices.Index(axis.Levels, highest)
		if at < from || at > from+1 || level > nearest(axis, max(likely, axis.First())) && level > highest {
			t.Errorf("seed %d: a later trial is at %v, after %v, with a likely scale of %v", seed, level, highest, likely)
		}
	}
}

// A model without an answer is beyond its capacity where requests within the limit would have
// answers: within 50 ms of a second, two requests are unanswered with a chance of 0.25 %. Within
// 500 ms, one is so with 50 %, and five are with 3 %.
func TestUnansweredRequests(t *testing.T) {
	t.Parallel()
	check := func(limit float64, load measure.Load, w measure.Window, want float64) {
		t.Helper()
		p := part{name: "a", load: load, limits: []colocation.Limit{{Metric: measure.LatencyP99, Seconds: limit}}}
		w.Model, w.Duration = "a", time.Second
		got, _ := p.latencies(measure.Measurement{Windows: []measure.Window{w}})
		if got[0] != want && !(math.IsNaN(got[0]) && math.IsNaN(want)) {
			t.Errorf("limit %g s, %v, %d scheduled: %g, want %g", limit, load, w.Scheduled, got[0], want)
		}
	}
	open, endless, unknown := measure.Load{RequestRate: 1, BatchSize: 1}, math.Inf(1), math.NaN()
	check(0.05, open, measure.Window{}, unknown)
	check(0.05, open, measure.Window{Scheduled: 2}, endless)
	check(0.5, open, measure.Window{Scheduled: 1}, unknown)
	check(0.5, open, measure.Window{Scheduled: 5}, endless)
	check(2, open, measure.Window{Scheduled: 100}, unknown) // the window is too short
	check(0.5, open, measure.Window{Scheduled: 1, Errors: 1}, endless)
	check(0.5, measure.Load{Concurrency: 1, BatchSize: 1}, measure.Window{}, unknown)
}
