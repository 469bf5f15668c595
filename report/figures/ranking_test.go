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
