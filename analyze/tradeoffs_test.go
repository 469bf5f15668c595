package analyze_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/search"
	"tuner/spec"
)

// The goal is at least 500 infer/s with p99 ≤ 20 ms. One configuration is fast enough, the other
// has enough throughput, none has both.
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
	type tradeoff struct {
		Metric      measure.Metric
		To          float64
		Key         string
		Concurrency int
	}
	// figures are drawn towards the expected ones
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a/b-1) < 0.03 })
	check := func(name string, o analyze.Options, want ...tradeoff) {
		t.Helper()
		var got []tradeoff
		for _, s := range mustAnalyze(t, campaign, o).Tradeoffs() {
			miss := s.Point.Misses[0]
			got = append(got, tradeoff{miss.Constraint.Metric, miss.Value, s.Candidate.Key(), s.Load.Concurrency})
		}
		if diff := cmp.Diff(want, got, near); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	two, one := analyzetest.Candidate(2, 1, 16).Key(), analyzetest.Candidate(1, 1, 4).Key()
	check("each at its best", analyze.Options{Goal: &goal}, tradeoff{measure.LatencyP99, 0.026, two, 8}, tradeoff{measure.Throughput, 300, one, 4})
	check("at one load", analyze.Options{Goal: &goal, At: spec.At{Load: measure.Load{Concurrency: 16}}}, tradeoff{measure.LatencyP99, 0.030, two, 16})
	least = 200
	check("satisfied", analyze.Options{Goal: &goal})
}
