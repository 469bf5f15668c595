// Package measure holds the values that a measurement consists of: metrics with unit and direction, loads, windows,
// validity flags and measurements. It is where the load generator's and the runner's results meet the search, the journal
// and the reports; it measures nothing itself and decides nothing.
package measure

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"tuner/measure/stats"
)

// Metric names a measured quantity. Values are in base units: infer/s, seconds, bytes, ratios.
type Metric string

// The metrics, by their names in YAML and output. Any other percentile of the latency is one too: latency_p75, latency_p99.9.
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
	ErrorRate     Metric = "error_rate"     // share of requests that failed, were refused or dropped, 0..1

	GPUMemory      Metric = "gpu_memory"      // bytes in use on the machine's GPUs, by all processes; the most that was seen
	GPUUtilization Metric = "gpu_utilization" // share of the time in which a GPU computes, mean over the machine's, 0..1
	GPUPower       Metric = "gpu_power"       // W, of the machine's GPUs together, mean over the window
	Energy         Metric = "energy"          // J per inference, of the machine's GPUs and CPU packages, as far as they tell
	Cost           Metric = "cost"            // per million inferences, in the currency of the price (search.Goal)
)

// latencyPercentile is what the names of latency percentiles begin with.
const latencyPercentile = "latency_p"

// Unit is what a metric's value counts.
type Unit string

// The units of metric values.
const (
	InferPerSecond Unit = "infer/s"
	Seconds        Unit = "s"
	Bytes          Unit = "B"
	Cores          Unit = "cores"
	Share          Unit = "share" // 0..1
	Watts          Unit = "W"
	Joules         Unit = "J"
	PerMillion     Unit = "currency per million inferences"
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
	case Memory, GPUMemory:
		return Info{Bytes, false}, true
	case CPU:
		return Info{Cores, false}, true
	case ErrorRate:
		return Info{Share, false}, true
	case GPUUtilization:
		return Info{Share, true}, true // as in Model Analyzer: a GPU that idles is paid for
	case GPUPower:
		return Info{Watts, false}, true
	case Energy:
		return Info{Joules, false}, true
	case Cost:
		return Info{PerMillion, false}, true
	}
	if _, ok := m.Quantile(); ok {
		return Info{Seconds, false}, true
	}
	return Info{}, false
}

// About says in words what the metric's value is, "" for a name that is not a metric.
func (m Metric) About() string {
	switch m {
	case Throughput:
		return "Inferences per second. A request of batch n counts n."
	case LatencyAvg:
		return "Mean latency of a request, as the client sees it."
	case Memory:
		return "Peak resident memory of the server process and of all processes that it started."
	case QueueTime:
		return "Mean time of a request in the server's queue."
	case ComputeInput:
		return "Mean time in which the server gathers the inputs of a request's batch."
	case ComputeInfer:
		return "Mean time in which the model computes a request's batch."
	case ComputeOutput:
		return "Mean time in which the server hands out the outputs of a request's batch."
	case CPU:
		return "Cores that the server process uses, on average."
	case ErrorRate:
		return "Share of the requests that failed, were refused, or were dropped."
	case GPUMemory:
		return "Memory in use on the machine's GPUs together, by all processes. The most that was seen."
	case GPUUtilization:
		return "Share of the time in which a GPU computes, on average over the machine's GPUs."
	case GPUPower:
		return "Power of the machine's GPUs together, on average."
	case Energy:
		return "Energy of an inference, on the machine's GPUs (NVML) and CPU packages (RAPL), as far as they can be read."
	case Cost:
		return "Cost of a million inferences: the price of an hour over the throughput."
	}
	if q, ok := m.Quantile(); ok {
		return fmt.Sprintf("Percentile %g of the latencies of requests, as the client sees them.", q*100)
	}
	return ""
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
	text, ok := strings.CutPrefix(string(m), latencyPercentile)
	if !ok {
		return 0, false
	}
	percent, err := strconv.ParseFloat(text, 64)
	if err != nil || !(percent > 0 && percent < 100) || strconv.FormatFloat(percent, 'f', -1, 64) != text {
		return 0, false // one metric has one name: latency_p99, not latency_p99.0
	}
	q, err := strconv.ParseFloat(text+"e-2", 64) // rounded once, unlike percent/100
	return q, err == nil
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

// Metrics lists the metrics that goals and tables are made of, in the order in which tables show them; goals may have other
// percentiles too. ErrorRate is not one: every goal has its limit.
func Metrics() []Metric {
	return []Metric{Throughput, LatencyAvg, LatencyP50, LatencyP90, LatencyP95, LatencyP99, Memory,
		QueueTime, ComputeInput, ComputeInfer, ComputeOutput, CPU, GPUMemory, GPUUtilization, GPUPower, Energy, Cost}
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
	case Watts:
		return fmt.Sprintf("%.1f W", value)
	case Joules:
		return formatJoules(value)
	case PerMillion:
		return significant(value) + " per million"
	}
	return fmt.Sprintf("%.2f %s", value, info.Unit)
}

// formatSeconds picks ms, or µs below one millisecond, with three significant digits.
func formatSeconds(s float64) string {
	ms := s * 1e3
	switch {
	case ms < 0.1:
		return fmt.Sprintf("%.3g µs", ms*1e3)
	case ms < 1:
		return fmt.Sprintf("%.0f µs", ms*1e3)
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

// formatJoules picks J, mJ or µJ.
func formatJoules(joules float64) string {
	switch {
	case joules >= 1 || joules == 0:
		return significant(joules) + " J"
	case joules >= 1e-3:
		return significant(joules*1e3) + " mJ"
	}
	return significant(joules*1e6) + " µJ"
}

// significant prints a number with three significant digits, and with all of those before the point.
func significant(v float64) string {
	decimals := 0
	if v != 0 {
		decimals = max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}
