package analyze_test

import (
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/search"
)

// Two limits that are each kept with 70 % are kept together with 49 %. Then nothing satisfies the limits, although no figure
// misses one. The error says why, as it does where the only configuration does not start again.
func TestUnmetWithoutAMissedLimit(t *testing.T) {
	t.Parallel()
	check := func(r analyze.Result, want string) {
		t.Helper()
		nearest, ok := r.Nearest()
		if !ok || len(nearest.Best.Misses) > 0 {
			t.Fatalf("nearest: %t, misses %v: the test shows nothing", ok, nearest.Best.Misses)
		}
		if err := r.Unmet(); err == nil || !strings.HasSuffix(err.Error(), "the nearest is default at concurrency 4: "+want) {
			t.Errorf("%v, want an end of %q", err, want)
		}
	}
	one := func() *analyzetest.Builder {
		return analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4)
	}
	point := *mustAnalyze(t, one(), analyze.Options{}).Configs[0].Best
	goal := analyzetest.Narrow(t, point, 0.703, measure.LatencyAvg, measure.Throughput) // 0.703² is 0.494
	check(mustAnalyze(t, one(), analyze.Options{Goal: goal}), "its limits are kept together with a probability of 49 %")
	check(mustAnalyze(t, one().FailFinal(search.Candidate{}, 4), analyze.Options{}), "its fresh processes failed")
}
