package analyze

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
)

// 360 inferences in a second are 1.296 million an hour, which cost 1.296. One GPU takes 72 J in
// that second.
func TestSampleHasTheGoalsMetrics(t *testing.T) {
	t.Parallel()
	h := measure.NewHistogram([]time.Duration{time.Millisecond, 3 * time.Millisecond})
	gpus := []measure.GPUWindow{{UUID: "A", Utilization: 0.5, Power: 72, MemoryUsed: 3e9, MemoryTotal: 8e9, Energy: 72}}
	w := measure.Window{Duration: time.Second, Requests: 360, Inferences: 360, Sub: []measure.SubWindow{{Requests: 360, Latency: h}}, GPUs: gpus}
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Cost, Weight: 1}}}, Price: 1.296}
	goal.Constraints = []search.Constraint{{Metric: "latency_p75"}}
	s := newSample([]measure.Measurement{{Windows: []measure.Window{w}}}, measure.Load{Concurrency: 1}, goal, nil)
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
