package analyze_test

import (
	"testing"
	"time"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/search"
	"tuner/spec"
)

// At least 500 infer/s at a p99 of at most 20 ms: one configuration is quick enough and the other does enough, neither both.
func TestTradeoffs(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	least, most := 500.0, 0.020
	goal := search.Goal{
		Objective:   search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
		Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: &most}, {Metric: measure.Throughput, Min: &least}},
	}
	campaign := analyzetest.New(t, analyzetest.Profile).
		Given(search.Candidate{}, 2, 100, 10*ms).Given(search.Candidate{}, 64, 250, 44*ms).
		Given(analyzetest.Candidate(2, 1, 16), 16, 600, 30*ms).Given(analyzetest.Candidate(2, 1, 16), 8, 550, 26*ms).
		Given(analyzetest.Candidate(1, 1, 4), 4, 300, 10*ms)
	check := func(name, want string, o analyze.Options) {
		t.Helper()
		if got := mustAnalyze(t, campaign, o).Tradeoffs().String(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
	check("each at its best", "A constraint would have to give: latency_p99 to 26.0 ms (2 instances × 1 thread, batch 16 at concurrency 8), "+
		"or throughput to 300.0 infer/s (1 instance × 1 thread, batch 4 at concurrency 4).", analyze.Options{Goal: &goal})
	check("at one load", "A constraint would have to give: latency_p99 to 30.0 ms (2 instances × 1 thread, batch 16 at concurrency 16).",
		analyze.Options{Goal: &goal, At: spec.At{Load: measure.Load{Concurrency: 16}}})
	least = 200
	check("satisfied", "", analyze.Options{Goal: &goal})
}
