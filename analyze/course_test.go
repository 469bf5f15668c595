package analyze_test

import (
	"math"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/search"
)

// The course has all trials under a load in their order, and no service trials.
func TestCourse(t *testing.T) {
	t.Parallel()
	best := analyzetest.Candidate(2, 1, 16)
	r := mustAnalyze(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8).Measure(best, 16).Service(best, 1).
		Fail(analyzetest.Candidate(2, 2, 16), 8, measure.StageStart, "not ready").Confirm(best, 16), analyze.Options{})
	want := []struct {
		name        string
		concurrency int
		phase       search.Phase
		failed      bool
	}{
		{"minilm_config_default", 8, search.PhaseDefault, false},
		{"minilm_config_0", 16, search.PhaseSearch, false},
		{"minilm_config_1", 8, search.PhaseSearch, true},
		{"minilm_config_0", 16, search.PhaseFinal, false},
	}
	if len(r.Course) != len(want) {
		t.Fatalf("steps are %+v", r.Course)
	}
	for i, got := range r.Course {
		if i > 0 && got.Event.Elapsed <= r.Course[i-1].Event.Elapsed {
			t.Errorf("step %d is not after the one before: %+v", i, r.Course)
		}
		sample, isMeasured := got.Sample(r.Goal)
		own := math.Log(sample.Values[measure.Throughput].Value)
		if math.IsNaN(got.Score) != want[i].failed || isMeasured == want[i].failed || isMeasured && math.Abs(got.Score-own) > 1e-9 {
			t.Errorf("step %d has score %v, want that of its own windows: %v", i, got.Score, own)
		}
		if trial := got.Event.Trial; got.Name != want[i].name || got.Ordinal != i+1 || trial.Phase != want[i].phase || trial.Load.Concurrency != want[i].concurrency {
			t.Errorf("step %d is %+v, want %+v", i, got, want[i])
		}
	}
	// A subject's latencies are those of its best load: two windows of the confirmation.
	winner, _ := r.Winner()
	if got := r.Explanation.Subjects[0].Latencies.Count(); got != winner.Best.Requests {
		t.Errorf("the distribution has %d requests, want %d", got, winner.Best.Requests)
	}
}
