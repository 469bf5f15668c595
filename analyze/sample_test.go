package analyze

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
)

// TestSampleHasTheGoalsMetrics: 360 inferences in a second are 1.296 million an hour, which cost 1.296; one GPU takes 72 J meanwhile.
func TestSampleHasTheGoalsMetrics(t *testing.T) {
	t.Parallel()
	h := measure.NewHistogram([]time.Duration{time.Millisecond, 3 * time.Millisecond})
	gpus := []measure.GPUWindow{{UUID: "A", Utilization: 0.5, Power: 72, MemoryUsed: 3e9, MemoryTotal: 8e9, Energy: 72}}
	w := measure.Window{Duration: time.Second, Requests: 360, Inferences: 360, Sub: []measure.SubWindow{{Requests: 360, Latency: h}}, GPUs: gpus}
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Cost, Weight: 1}}}, Price: 1.296}
	goal.Constraints = []search.Constraint{{Metric: "latency_p75"}}
	s := newSample([]measure.Measurement{{Windows: []measure.Window{w}}}, goal)
	for metric, want := range map[measure.Metric]float64{measure.Cost: 1, "latency_p75": 0.003, measure.Energy: 0.2, measure.GPUMemory: 3e9,
		measure.GPUPower: 72, measure.GPUUtilization: 0.5} {
		if got := s.Values[metric].Value; math.Abs(got-want) > 1e-3*want {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
	if diff := cmp.Diff(gpus, s.GPUs); diff != "" {
		t.Errorf("GPUs (-want +got):\n%s", diff)
	}
}

// TestTermsErrTogether: half-widths of 10 % of the throughput and of 5 % of the mean latency add up, since neither errs without the other.
func TestTermsErrTogether(t *testing.T) {
	t.Parallel()
	h := measure.NewHistogram([]time.Duration{10 * time.Millisecond})
	m := measure.Measurement{Windows: []measure.Window{{Duration: time.Second, Requests: 100, Inferences: 100, Sub: []measure.SubWindow{{Requests: 100, Latency: h}}}}}
	values := map[measure.Metric]measure.Estimate{
		measure.Throughput: {Value: 100, Lo: 90, Hi: 110},
		measure.LatencyAvg: {Value: 0.010, Lo: 0.0095, Hi: 0.0105},
	}
	check := func(want float64, terms ...search.Term) {
		t.Helper()
		s := scoreOf(m, values, search.Goal{Objective: search.Objective{Terms: terms}})
		if math.Abs(s.Hi-s.Value-want) > 1e-9 || math.Abs(s.Value-s.Lo-want) > 1e-9 {
			t.Errorf("the score of %v is %v, want a half-width of %v", terms, s, want)
		}
	}
	throughput, latency := search.Term{Metric: measure.Throughput, Weight: 1}, search.Term{Metric: measure.LatencyAvg, Weight: 1}
	check(0.10, throughput)
	check(0.15, throughput, latency)
	throughput.Weight = 3
	check(0.35, throughput, latency)
}
