// Package measure holds the values of a measurement: metrics with unit and direction, loads,
// windows, validity flags and measurements. The load generator and the runner produce these values;
// the search, the journal and the reports use them. The package measures nothing and decides
// nothing.
package measure

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"tuner/measure/stats"
)

// Metric names a measured quantity. Values are in base units: infer/s, seconds, bytes, ratios.
type Metric string

// The metrics, by their names in YAML and output. Other percentiles of the latency are metrics too:
// latency_p75, latency_p99.9. So are the goodputs, which name their limit: goodput_50ms.
const (
	Throughput    Metric = "throughput"     // inferences per second; a request of batch n counts n
	LatencyAvg    Metric = "latency_avg"    // s, latency of requests at the client
	LatencyP50    Metric = "latency_p50"    // s
	LatencyP90    Metric = "latency_p90"    // s
	LatencyP95    Metric = "latency_p95"    // s
	LatencyP99    Metric = "latency_p99"    // s
	Memory        Metric = "memory"         // bytes, peak resident set of the engine process
	QueueTime     Metric = "queue"          // s, mean per request, from the server's statistics
	ComputeInput  Metric = "compute_input"  // s, mean per request, from the server's statistics
	ComputeInfer  Metric = "compute_infer"  // s, mean per request, from the server's statistics
	ComputeOutput Metric = "compute_output" // s, mean per request, from the server's statistics
	// cores used by the engine process, mean over the window
	CPU Metric = "cpu"
	// share of requests that failed, were refused or dropped, 0..1
	ErrorRate Metric = "error_rate"

	// bytes in use on the machine's GPUs, by all processes; the largest value seen
	GPUMemory Metric = "gpu_memory"
	// share of the time in which a GPU computes, 0..1, mean over the machine's GPUs
	GPUUtilization Metric = "gpu_utilization"
	GPUPower       Metric = "gpu_power" // W, of all GPUs of the machine, mean over the window
	// J per inference, of the machine's GPUs and CPU packages that have a counter
	Energy Metric = "energy"
	Cost   Metric = "cost" // per million inferences, in the currency of the price (search.Goal)

	// several models: the traffic that clients offer, as a multiple of the profile's
	Scale Metric = "scale"
)

// MostErrors is the largest share of failed and dropped requests with which a load counts as served.
// A server that refuses requests answers the others quickly, so their latencies alone say too little.
const MostErrors = 0.01

// A metric of one of several models has the model's name before it: encoder.latency_p99. Without a
// name it is a figure of the server.

// Of returns the metric of a model: encoder.latency_p99. Without a name it is the metric itself.
func (m Metric) Of(model string) Metric {
	if model == "" {
		return m
	}
	return Metric(model) + "." + m
}

// Split returns the model that a metric is about, and the metric without its name. The model is ""
// for figures of the server. A text that is no metric is returned as it is.
func (m Metric) Split() (model string, of Metric) {
	if _, isPlain := m.plain(); isPlain {
		return "", m
	}
	name, rest, found := strings.Cut(string(m), ".")
	if _, known := Metric(rest).plain(); !found || !known || name == "" || Metric(rest) == Scale {
		return "", m
	}
	return name, Metric(rest)
}

// latencyPercentile is the prefix of the names of latency percentiles.
const latencyPercentile = "latency_p"

// A goodput's name has its limit in milliseconds between these: goodput_50ms, goodput_2.5ms.
const (
	goodputPrefix = "goodput_"
	goodputUnit   = "ms"
)

// Goodput returns the metric of the inferences per second that are answered within a limit. The
// limit is at least 1 µs, in whole nanoseconds.
func Goodput(limit time.Duration) Metric {
	return Metric(goodputPrefix + strconv.FormatFloat(limit.Seconds()*1e3, 'f', -1, 64) + goodputUnit)
}

// Within returns the limit of a goodput, also of one model's. It returns false for any other metric.
func (m Metric) Within() (time.Duration, bool) {
	_, of := m.Split()
	return of.within()
}

// within is Within for a metric without a model's name.
func (m Metric) within() (time.Duration, bool) {
	text, isGoodput := strings.CutPrefix(string(m), goodputPrefix)
	text, isGiven := strings.CutSuffix(text, goodputUnit)
	if !isGoodput || !isGiven {
		return 0, false
	}
	ms, err := strconv.ParseFloat(text, 64)
	limit := time.Duration(math.Round(ms * float64(time.Millisecond)))
	if err != nil || !(ms*float64(time.Millisecond) >= float64(lowestLatency) && ms*float64(time.Millisecond) <= float64(highestLatency)) || Goodput(limit) != m {
		return 0, false // each metric has one name: goodput_50ms, not goodput_50.0ms
	}
	return limit, true
}

// IsGoodput reports whether the metric is a goodput.
func (m Metric) IsGoodput() bool {
	_, is := m.Within()
	return is
}

// Unit is the unit of a metric's values.
type Unit string

// The units of metric values.
const (
	InferPerSecond Unit = "infer/s"
	Seconds        Unit = "s"
	Bytes          Unit = "B"
	Cores          Unit = "cores"
	Multiples      Unit = "×"     // a multiple
	Share          Unit = "share" // 0..1
	Watts          Unit = "W"
	Joules         Unit = "J"
	PerMillion     Unit = "currency per million inferences"
)

// Info describes a metric: its unit, and whether larger values are better.
type Info struct {
	Unit         Unit
	HigherBetter bool
}

// Info returns the metric's description. It returns false for a name that is not a metric.
func (m Metric) Info() (Info, bool) {
	_, of := m.Split()
	return of.plain()
}

// plain is Info for a metric without a model's name.
func (m Metric) plain() (Info, bool) {
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
		// higher is better, as in Model Analyzer: an idle GPU costs money too
		return Info{Share, true}, true
	case GPUPower:
		return Info{Watts, false}, true
	case Energy:
		return Info{Joules, false}, true
	case Cost:
		return Info{PerMillion, false}, true
	case Scale:
		return Info{Multiples, true}, true
	}
	if _, ok := m.quantile(); ok {
		return Info{Seconds, false}, true
	}
	if _, ok := m.within(); ok {
		return Info{InferPerSecond, true}, true
	}
	return Info{}, false
}

// About says in words what the metric's value is, "" for a name that is not a metric.
func (m Metric) About() string {
	if model, of := m.Split(); model != "" {
		return "Of model " + model + ": " + of.About()
	}
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
	case Scale:
		return "Traffic that the clients of all models offer, as a multiple of the profile's."
	}
	if q, ok := m.Quantile(); ok {
		return fmt.Sprintf("Percentile %g of the latencies of requests, as the client sees them.", q*100)
	}
	if limit, ok := m.Within(); ok {
		return fmt.Sprintf("Inferences per second whose request was answered within %v, as the client sees it. A request of batch n counts n.", limit)
	}
	return ""
}

// Quantile returns the quantile (0..1) of a latency percentile metric, also of one model's. It
// returns false for any other metric.
func (m Metric) Quantile() (float64, bool) {
	_, of := m.Split()
	return of.quantile()
}

// quantile is Quantile for a metric without a model's name.
func (m Metric) quantile() (float64, bool) {
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
		return 0, false // each metric has one name: latency_p99, not latency_p99.0
	}
	q, err := strconv.ParseFloat(text+"e-2", 64) // rounds once; percent/100 would round twice
	return q, err == nil
}

// Samples returns the smallest number of independent requests whose order statistics bound a
// latency percentile from above. It is 368 for the 99th percentile, and 0 for any other metric.
func (m Metric) Samples() int {
	q, ok := m.Quantile()
	if !ok {
		return 0
	}
	return stats.OrderSamples(q)
}

// Metrics lists the metrics for goals and tables, in the order of the tables. Goals may also have
// other percentiles, and goodputs. ErrorRate is not listed, since every goal has its limit. Neither
// is Scale, which only several models have.
func Metrics() []Metric {
	return []Metric{Throughput, LatencyAvg, LatencyP50, LatencyP90, LatencyP95, LatencyP99, Memory,
		QueueTime, ComputeInput, ComputeInfer, ComputeOutput, CPU, GPUMemory, GPUUtilization, GPUPower, Energy, Cost}
}

// Format returns a value with its unit for people: "412.3 infer/s", "29.8 ms", "311 MB".
func (m Metric) Format(value float64) string {
	info, _ := m.Info()
	switch info.Unit {
	case InferPerSecond:
		return fmt.Sprintf("%.*f infer/s", ThroughputDecimals(value, 1), value)
	case Seconds:
		return formatSeconds(value)
	case Share:
		return fmt.Sprintf("%.1f %%", value*100)
	case Bytes:
		if value > 0 && value < 1e6 { // a limit may be that low by mistake
			return fmt.Sprintf("%.3g kB", value/1e3)
		}
		return fmt.Sprintf("%.0f MB", value/1e6)
	case Watts:
		return fmt.Sprintf("%.1f W", value)
	case Joules:
		return formatJoules(value)
	case PerMillion:
		return significant(value) + " per million"
	case Multiples:
		return fmt.Sprintf("%.3g ×", value)
	}
	return fmt.Sprintf("%.2f %s", value, info.Unit)
}

// slow is the throughput below which one decimal says little: a model that takes 25 s has 0.04 infer/s.
const slow = 10

// ThroughputDecimals returns the number of decimals with which people read a throughput: usual, and
// below 10 infer/s those of three significant digits.
func ThroughputDecimals(value float64, usual int) int {
	if value > 0 && value < slow {
		return significantDecimals(value)
	}
	return usual
}

// formatSeconds uses ms, or µs below one millisecond, with three significant digits.
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

// formatJoules uses J, mJ or µJ.
func formatJoules(joules float64) string {
	switch {
	case joules >= 1 || joules == 0:
		return significant(joules) + " J"
	case joules >= 1e-3:
		return significant(joules*1e3) + " mJ"
	}
	return significant(joules*1e6) + " µJ"
}

// significant formats a number with three significant digits. Digits before the decimal point are
// never dropped.
func significant(v float64) string { return strconv.FormatFloat(v, 'f', significantDecimals(v), 64) }

// significantDecimals returns the number of decimals with which a number has three significant digits.
func significantDecimals(v float64) int {
	if v == 0 {
		return 0
	}
	return max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
}
