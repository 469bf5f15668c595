// Package measure holds the values that a measurement consists of: metrics with unit and direction, loads, windows,
// validity flags and measurements. It is where the load generator's and the runner's results meet the search, the journal
// and the reports; it measures nothing itself and decides nothing.
package measure

import (
	"fmt"

	"tuner/stats"
)

// Metric names a measured quantity. Values are in base units: infer/s, seconds, bytes, ratios.
type Metric string

// The metrics, by their names in YAML and output.
const (
	Throughput    Metric = "throughput"     // inferences per second; a request of batch n counts n
	LatencyAvg    Metric = "latency_avg"    // s, request latency as the client sees it
	LatencyP50    Metric = "latency_p50"    // s
	LatencyP90    Metric = "latency_p90"    // s
	LatencyP95    Metric = "latency_p95"    // s
	LatencyP99    Metric = "latency_p99"    // s
	Memory        Metric = "memory"         // bytes, peak resident set of the engine process
	QueueTime     Metric = "queue"          // s, mean per request, from the server's statistics
	ComputeInput  Metric = "compute_input"  // s, mean per request, from the server's statistics
	ComputeInfer  Metric = "compute_infer"  // s, mean per request, from the server's statistics
	ComputeOutput Metric = "compute_output" // s, mean per request, from the server's statistics
	CPU           Metric = "cpu"            // cores used by the engine process, mean over the window
	ErrorRate     Metric = "error_rate"     // share of requests that failed or were refused, 0..1
)

// Unit is what a metric's value counts.
type Unit string

// The units of metric values.
const (
	InferPerSecond Unit = "infer/s"
	Seconds        Unit = "s"
	Bytes          Unit = "B"
	Cores          Unit = "cores"
	Share          Unit = "share" // 0..1
)

// Info describes a metric: its unit and which direction is better.
type Info struct {
	Unit         Unit
	HigherBetter bool
}

// Info returns the metric's description, and false for a name that is not a metric.
func (m Metric) Info() (Info, bool) {
	switch m {
	case Throughput:
		return Info{InferPerSecond, true}, true
	case LatencyAvg, LatencyP50, LatencyP90, LatencyP95, LatencyP99, QueueTime, ComputeInput, ComputeInfer, ComputeOutput:
		return Info{Seconds, false}, true
	case Memory:
		return Info{Bytes, false}, true
	case CPU:
		return Info{Cores, false}, true
	case ErrorRate:
		return Info{Share, false}, true
	}
	return Info{}, false
}

// Quantile returns the quantile (0..1) that a latency percentile metric stands for, and false for any other metric.
func (m Metric) Quantile() (float64, bool) {
	switch m {
	case LatencyP50:
		return 0.50, true
	case LatencyP90:
		return 0.90, true
	case LatencyP95:
		return 0.95, true
	case LatencyP99:
		return 0.99, true
	}
	return 0, false
}

// Samples is the smallest number of independent requests whose order statistics bound a latency percentile from above, 0
// for any other metric: 368 for the 99th percentile.
func (m Metric) Samples() int {
	q, ok := m.Quantile()
	if !ok {
		return 0
	}
	return stats.OrderSamples(q)
}

// Metrics lists the metrics that goals and tables are made of, in the order in which tables show them. ErrorRate is not one:
// every goal has its limit.
func Metrics() []Metric {
	return []Metric{Throughput, LatencyAvg, LatencyP50, LatencyP90, LatencyP95, LatencyP99, Memory,
		QueueTime, ComputeInput, ComputeInfer, ComputeOutput, CPU}
}

// Format prints a value of the metric for people, unit included: "412.3 infer/s", "29.8 ms", "311 MB".
func (m Metric) Format(value float64) string {
	info, _ := m.Info()
	switch info.Unit {
	case InferPerSecond:
		return fmt.Sprintf("%.1f infer/s", value)
	case Seconds:
		return formatSeconds(value)
	case Share:
		return fmt.Sprintf("%.1f %%", value*100)
	case Bytes:
		return fmt.Sprintf("%.0f MB", value/1e6)
	}
	return fmt.Sprintf("%.2f %s", value, info.Unit)
}

// formatSeconds picks ms, or µs below one millisecond, with three significant digits.
func formatSeconds(s float64) string {
	ms := s * 1e3
	switch {
	case ms < 1:
		return fmt.Sprintf("%.0f µs", ms*1e3)
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}
