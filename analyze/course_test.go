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
	want := []analyze.CourseStep{
		{Name: "minilm_config_default", Load: measure.Load{Concurrency: 8, BatchSize: 1}, Phase: search.PhaseDefault},
		{Name: "minilm_config_0", Load: measure.Load{Concurrency: 16, BatchSize: 1}, Phase: search.PhaseSearch},
		{Name: "minilm_config_1", Load: measure.Load{Concurrency: 8, BatchSize: 1}, Phase: search.PhaseSearch, Failed: true},
		{Name: "minilm_config_0", Load: measure.Load{Concurrency: 16, BatchSize: 1}, Phase: search.PhaseFinal},
	}
	if len(r.Course) != len(want) {
		t.Fatalf("steps are %+v", r.Course)
	}
	for i, got := range r.Course {
		if i > 0 && got.Elapsed <= r.Course[i-1].Elapsed {
			t.Errorf("step %d is not after the one before: %+v", i, r.Course)
		}
		if math.IsNaN(got.Score) != got.Failed || got.Phase == search.PhaseSearch && !got.Failed && math.Abs(got.Score-math.Log(r.Configs[0].Points[0].Searched.Values[measure.Throughput].Value)) > 1e-9 {
			t.Errorf("step %d has score %v, want that of its own windows", i, got.Score)
		}
		if got.Elapsed, got.Score = 0, 0; got != want[i] {
			t.Errorf("step %d is %+v, want %+v", i, got, want[i])
		}
	}
	// A subject's latencies are those of its best load: two windows of the confirmation.
	winner, _ := r.Winner()
	if got := r.Explanation.Subjects[0].Latencies.Count(); got != winner.Best.Requests {
		t.Errorf("the distribution has %d requests, want %d", got, winner.Best.Requests)
	}
}
