package figures

import (
	"testing"

	"tuner/analyze"
	"tuner/measure"
)

// At a request rate of 100/s the interval of a throughput ends there. Its error is still that of the lower half.
func TestErrorOfARate(t *testing.T) {
	t.Parallel()
	cut := measure.Load{RequestRate: 100, BatchSize: 1}.Bounded(measure.Throughput, measure.Estimate{Value: 99.5, Lo: 95.5, Hi: 103.5})
	if got := plusMinus(cut); got != "99.5 ±4.0" {
		t.Errorf("%q, want an error of 4", got)
	}
}

func TestMetricColumns(t *testing.T) {
	t.Parallel()
	check := func(m measure.Metric, value float64, header, cell string) {
		t.Helper()
		c := analyze.Config{Best: &analyze.Point{Sample: analyze.Sample{Values: map[measure.Metric]measure.Estimate{m: {Value: value}}}}}
		if col := metricColumn(m); col.header != header || col.cell(c) != cell {
			t.Errorf("%s has the column %q with %q, want %q with %q", m, col.header, col.cell(c), header, cell)
		}
	}
	check(measure.LatencyP95, 0.0004, "p95 ms", "0.400")
	check("latency_p99.9", 0.0412, "p99.9 ms", "41.2")
	check(measure.LatencyAvg, 0.0045, "mean ms", "4.50")
	check(measure.QueueTime, 0.0045, "queue ms", "4.50")
	check(measure.ComputeInfer, 0.0045, "infer ms", "4.50")
	check(measure.CPU, 1.5, "cores", "1.5")
	check(measure.GPUMemory, 2e9, "GPU MB", "2000")
	check(measure.GPUUtilization, 0.815, "GPU %", "81.5")
	check(measure.GPUPower, 61.25, "GPU W", "61.2")
	check(measure.Energy, 0.0123, "J/infer", "0.0123")
	check(measure.Cost, 0.2713, "cost/M", "0.271")
}

// The cell of a model that takes 25 s says how fast it is, and how certain that is.
func TestThroughputOfASlowModel(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]measure.Estimate{
		"0.0400 ±0.0012": {Value: 0.04, Lo: 0.0388, Hi: 0.0412},
		"9.88 ±0.05":     {Value: 9.876, Lo: 9.826, Hi: 9.926},
		"10.0 ±0.1":      {Value: 10, Lo: 9.9, Hi: 10.1},
		"1234":           {Value: 1234.4, Lo: 1234.4, Hi: 1234.4},
	} {
		if got := plusMinus(e); got != want {
			t.Errorf("%v is %q, want %q", e, got, want)
		}
	}
}
