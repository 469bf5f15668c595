package analyze_test

import (
	"errors"
	"slices"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/search"
)

// minimize returns a goal that minimizes one metric within 50 ms.
func minimize(m measure.Metric) *search.Goal {
	limit := 0.050
	return &search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: m, Weight: 1}}},
		Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: &limit}}}
}

// A metric that no configuration has cannot rank any. Neither can a metric that is 0 for all: up to
// two requests in flight never wait for two instances.
func TestObjectiveMustBeKnown(t *testing.T) {
	t.Parallel()
	b := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 1, 2)
	for _, m := range []measure.Metric{measure.Energy, measure.QueueTime} {
		_, err := analyze.Analyze(b.Campaign(), analyze.Options{Goal: minimize(m)})
		objective := new(analyze.ObjectiveError)
		if !errors.As(err, &objective) || objective.Metric != m {
			t.Fatalf("%s: the error is %v", m, err)
		}
		if !slices.Contains(objective.Have, measure.Throughput) || slices.Contains(objective.Have, m) {
			t.Errorf("%s: there are figures of %v", m, objective.Have)
		}
	}
	recording := analyze.Recording{Model: "mlp", Source: "mlp.csv", Configs: []analyze.RecordedConfig{{Name: "mlp", Default: true, Deployed: &modelconfig.Config{}, Points: []analyze.RecordedPoint{
		{Load: measure.Load{Concurrency: 1}, Values: map[measure.Metric]float64{measure.Throughput: 100}}}}}}
	if _, err := recording.Rank(*minimize(measure.Energy), analyze.Options{}); !errors.As(err, new(*analyze.ObjectiveError)) {
		t.Errorf("of a recording the error is %v", err)
	}
	// batches of 4 are too small for this load; least time in the queue would be 0
	b.Measure(search.Candidate{}, 12, 12)
	if best, ok := mustAnalyze(t, b, analyze.Options{Goal: minimize(measure.QueueTime)}).Winner(); !ok || best.Best.Load.Concurrency > 2 {
		t.Errorf("the best load is %v, want one without a queue", best.Best.Load)
	}
	failed := analyzetest.New(t, analyzetest.Profile).Fail(search.Candidate{}, 4, measure.StageLoad, "invalid graph")
	if r := mustAnalyze(t, failed, analyze.Options{Goal: minimize(measure.Energy)}); len(r.Failures) != 1 {
		t.Errorf("where nothing was measured there are %d failures", len(r.Failures))
	}
}

// Only one configuration has its energy, and it exceeds the limit. The other one keeps the limit,
// but cannot be the best without that metric.
func TestWinnerHasAScore(t *testing.T) {
	t.Parallel()
	best := analyzetest.Candidate(2, 1, 16)
	measuredAt := func(concurrency int) analyze.Result {
		t.Helper()
		c := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4).Measure(best, concurrency).Campaign()
		for _, e := range c.Events {
			for i := range e.Measurement.Windows {
				if !e.Trial.Candidate.IsDefault() {
					e.Measurement.Windows[i].GPUs = []measure.GPUWindow{{UUID: "A", Power: 72, Energy: 72}}
				}
			}
		}
		r, err := analyze.Analyze(c, analyze.Options{Goal: minimize(measure.Energy)})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := measuredAt(32) // mean latency 52 ms
	nearest, ok := r.Nearest()
	if !ok || nearest.Candidate.Key() != best.Key() {
		t.Errorf("nearest to the constraints is %s, %t", nearest.Name, ok)
	}
	if misses := r.Default().Best.Misses; len(misses) != 1 || misses[0].String() != "energy is unknown" {
		t.Errorf("the default misses %v", misses)
	}
	if winner, ok := measuredAt(16).Winner(); !ok || winner.Candidate.Key() != best.Key() || winner.Gain != nil {
		t.Errorf("the winner is %s with the gain %v, want one without", winner.Name, winner.Gain)
	}
}

// The same holds for recordings of other programs.
func TestRecordedWinnerHasAScore(t *testing.T) {
	t.Parallel()
	config := func(name string, values map[measure.Metric]float64) analyze.RecordedConfig {
		return analyze.RecordedConfig{Name: name, Default: name == "default", Deployed: &modelconfig.Config{},
			Points: []analyze.RecordedPoint{{Load: measure.Load{Concurrency: 1}, Values: values}}}
	}
	recording := analyze.Recording{Model: "mlp", Source: "mlp.csv", Configs: []analyze.RecordedConfig{
		config("default", map[measure.Metric]float64{measure.LatencyP99: 0.010}),
		config("other", map[measure.Metric]float64{measure.LatencyP99: 0.060, measure.LatencyAvg: 0.030}),
	}}
	r, err := recording.Rank(*minimize(measure.LatencyAvg), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if nearest, ok := r.Nearest(); !ok || nearest.Name != "other" {
		t.Errorf("nearest to the constraints is %q, want the only one with a score", nearest.Name)
	}
}
