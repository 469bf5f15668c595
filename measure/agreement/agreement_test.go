package agreement

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/measure"
)

func figures(values map[measure.Metric]float64) Figures {
	list := Figures{}
	for m, x := range values {
		list[m] = measure.Estimate{Value: x, Lo: 0.9 * x, Hi: 1.1 * x}
	}
	return list
}

// Five requests are in flight at 185 infer/s, so the mean latency is 27 ms on the average machine.
func TestTimesMoveWithEstimates(t *testing.T) {
	t.Parallel()
	measured := figures(map[measure.Metric]float64{measure.Throughput: 92.6, measure.LatencyAvg: 0.054, measure.LatencyP50: 0.050,
		measure.LatencyP95: 0.080, measure.LatencyP99: 0.100, "latency_p99.9": 0.200, measure.ComputeInfer: 0.040, measure.Memory: 1e8})
	estimated := figures(map[measure.Metric]float64{measure.Throughput: 185.2, measure.LatencyP99: 0.060})
	for _, c := range []struct {
		name string
		load measure.Load
		want map[measure.Metric]float64
	}{
		{"closed loop", measure.Load{Concurrency: 5}, map[measure.Metric]float64{measure.Throughput: 185.2, measure.LatencyAvg: 0.027,
			measure.LatencyP50: 0.025, measure.LatencyP95: 0.027 + 26.0/46*0.033, measure.LatencyP99: 0.060, "latency_p99.9": 0.120,
			measure.ComputeInfer: 0.020, measure.Memory: 1e8}},
		{"open loop", measure.Load{RequestRate: 90}, map[measure.Metric]float64{measure.Throughput: 185.2, measure.LatencyAvg: 0.054,
			measure.LatencyP50: 0.050, measure.LatencyP95: 0.054 + 26.0/46*0.006, measure.LatencyP99: 0.060, "latency_p99.9": 0.120,
			measure.ComputeInfer: 0.040, measure.Memory: 1e8}},
	} {
		got := measured.With(estimated, c.load)
		if diff := cmp.Diff(figures(c.want), got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(got, got.With(estimated, c.load), cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Errorf("%s: they move again (-once +twice):\n%s", c.name, diff)
		}
		if want, pace := c.want[measure.ComputeInfer]/0.040, measured.Pace("", estimated, c.load); math.Abs(pace-want) > 1e-9 {
			t.Errorf("%s: the pace is %v, want %v", c.name, pace, want)
		}
	}
}

// Figures of one of several models move with the estimates of that model alone.
func TestTimesOfAModelMoveWithItsEstimates(t *testing.T) {
	t.Parallel()
	measured := figures(map[measure.Metric]float64{"a.latency_p50": 0.010, "a.latency_p99": 0.020, "b.latency_p50": 0.030, "b.latency_avg": 0.040})
	got := measured.With(figures(map[measure.Metric]float64{"a.latency_p99": 0.010}), measure.Load{Scale: 1})
	want := figures(map[measure.Metric]float64{"a.latency_p50": 0.005, "a.latency_p99": 0.010, "b.latency_p50": 0.030, "b.latency_avg": 0.040})
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Percentiles that ascend with the estimates between them still ascend. Little's law holds in a closed loop.
func TestMovedTimesAgree(t *testing.T) {
	t.Parallel()
	percentiles := []measure.Metric{measure.LatencyP50, measure.LatencyP90, measure.LatencyP95, measure.LatencyP99}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		measured, estimated := map[measure.Metric]float64{}, map[measure.Metric]float64{}
		clients, mean := 1+r.IntN(64), r.IntN(len(percentiles))
		from, to := 0.0, 0.0
		for i, m := range percentiles {
			if i == mean { // the mean latency is below this percentile
				from, to = from+r.Float64(), to+r.Float64()
				measured[measure.LatencyAvg] = from
				measured[measure.Throughput], estimated[measure.Throughput] = float64(clients)/from, float64(clients)/to
			}
			from, to = from+r.Float64(), to+r.Float64()
			if measured[m] = from; r.IntN(2) == 0 {
				estimated[m] = to
			}
		}
		values := figures(measured).With(figures(estimated), measure.Load{Concurrency: clients})
		if inFlight := values[measure.Throughput].Value * values[measure.LatencyAvg].Value; math.Abs(inFlight-float64(clients)) > 1e-6*float64(clients) {
			t.Errorf("seed %d: %d clients, but throughput times mean latency is %v", seed, clients, inFlight)
		}
		for i, m := range percentiles[1:] {
			if lower, higher := values[percentiles[i]].Value, values[m].Value; higher < lower*(1-1e-9) {
				t.Errorf("seed %d: %s is %v, above %s, which is %v", seed, percentiles[i], lower, m, higher)
			}
		}
		for m, want := range estimated {
			if got := values[m].Value; got != want {
				t.Errorf("seed %d: %s is %v, and its estimate %v", seed, m, got, want)
			}
		}
	}
}
