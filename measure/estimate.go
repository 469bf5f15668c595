package measure

import (
	"slices"
	"time"

	"tuner/stats"
)

// Estimate is a metric's value with its 95 % confidence interval. Lo = Hi = Value when no interval can be computed.
type Estimate = stats.Estimate

// Estimate returns a metric over all windows of the measurement taken together, with its 95 % interval:
//   - throughput and mean latency by batch means over the sub-windows, widened for autocorrelation;
//   - latency percentiles by order statistics of as many independent requests as there were executed batches, since the
//     requests of a batch end together; widened likewise;
//   - the server's parts and CPU from the differences between windows;
//   - memory, a single peak, without an interval.
//
// It is false when the measurement does not tell: no windows, no completed request (but throughput is then 0), a server
// without statistics, unknown memory or CPU.
func (m Measurement) Estimate(metric Metric) (Estimate, bool) {
	if len(m.Windows) == 0 {
		return Estimate{}, false
	}
	if q, ok := metric.Quantile(); ok {
		return m.percentile(q)
	}
	switch metric {
	case Throughput:
		return m.throughput()
	case LatencyAvg:
		return m.meanLatency()
	case Memory:
		bytes := float64(m.Memory)
		return Estimate{Value: bytes, Lo: bytes, Hi: bytes}, m.Memory > 0
	case CPU:
		e, ok := m.ratio(func(w Window) (float64, float64) { return w.EngineCPU.Seconds(), w.Duration.Seconds() })
		return e, ok && e.Value > 0
	case ErrorRate:
		return m.errorRate()
	case QueueTime:
		return m.serverPart(func(s ServerStats) time.Duration { return s.Queue })
	case ComputeInput:
		return m.serverPart(func(s ServerStats) time.Duration { return s.ComputeInput })
	case ComputeInfer:
		return m.serverPart(func(s ServerStats) time.Duration { return s.ComputeInfer })
	case ComputeOutput:
		return m.serverPart(func(s ServerStats) time.Duration { return s.ComputeOutput })
	}
	return Estimate{}, false
}

// Flags returns the flags of all windows, each once, in alphabetical order.
func (m Measurement) Flags() []Flag {
	var flags []Flag
	for _, w := range m.Windows {
		flags = append(flags, w.Flags...)
	}
	slices.Sort(flags)
	return slices.Compact(flags)
}

// Errors is the number of failed requests in all windows.
func (m Measurement) Errors() int {
	n := 0
	for _, w := range m.Windows {
		n += w.Errors
	}
	return n
}

// errorRate is the share of the windows' requests that failed, without an interval; false when there were none.
func (m Measurement) errorRate() (Estimate, bool) {
	failed, all := m.Errors(), m.Errors()
	for _, w := range m.Windows {
		all += w.Requests
	}
	if all == 0 {
		return Estimate{}, false
	}
	rate := float64(failed) / float64(all)
	return Estimate{Value: rate, Lo: rate, Hi: rate}, true
}

// throughput pools the windows' inferences and time.
func (m Measurement) throughput() (Estimate, bool) {
	var inferences int
	var duration time.Duration
	var rates []float64 // requests per second by sub-window
	for _, w := range m.Windows {
		inferences += w.Inferences
		duration += w.Duration
		for _, s := range w.Sub {
			rates = append(rates, float64(s.Requests)*float64(len(w.Sub))/w.Duration.Seconds())
		}
	}
	if duration <= 0 {
		return Estimate{}, false
	}
	return around(float64(inferences)/duration.Seconds(), stats.BatchMeans(rates)), true
}

func (m Measurement) meanLatency() (Estimate, bool) {
	all := m.latencies()
	return around(all.Mean().Seconds(), stats.BatchMeans(m.latencySeries())), all.Count() > 0
}

// percentile is the q-quantile of all latencies.
func (m Measurement) percentile(q float64) (Estimate, bool) {
	all := m.latencies()
	n := all.Count()
	if n == 0 {
		return Estimate{}, false
	}
	independent := max(1, int(float64(n)/m.batchRequests()/stats.Inflation(m.latencySeries())))
	lo, hi := stats.OrderRanks(independent, q)
	scale := float64(n) / float64(independent)
	return Estimate{
		Value: all.Quantile(q).Seconds(),
		Lo:    all.Rank(int(float64(lo) * scale)).Seconds(),
		Hi:    all.Rank(int(float64(hi) * scale)).Seconds(),
	}, true
}

// latencies merges the windows' distributions.
func (m Measurement) latencies() Histogram {
	var parts []Histogram
	for _, w := range m.Windows {
		for _, s := range w.Sub {
			parts = append(parts, s.Latency)
		}
	}
	return Merge(parts...)
}

// latencySeries is the mean latency in seconds of each sub-window in which a request completed.
func (m Measurement) latencySeries() []float64 {
	var series []float64
	for _, w := range m.Windows {
		for _, s := range w.Sub {
			if s.Latency.Count() > 0 {
				series = append(series, s.Latency.Mean().Seconds())
			}
		}
	}
	return series
}

// batchRequests is the mean number of requests in an executed batch, at least 1.
func (m Measurement) batchRequests() float64 {
	var requests, executions int
	for _, w := range m.Windows {
		requests += w.Server.Requests
		executions += w.Server.Executions
	}
	if executions == 0 {
		return 1
	}
	return max(1, float64(requests)/float64(executions))
}

// serverPart is the mean of a part of the requests' time in the server.
func (m Measurement) serverPart(part func(ServerStats) time.Duration) (Estimate, bool) {
	return m.ratio(func(w Window) (float64, float64) { return part(w.Server).Seconds(), float64(w.Server.Requests) })
}

// ratio is the quotient of two sums over the windows, with the interval that the windows' own quotients give. It is
// false when every window's denominator is zero.
func (m Measurement) ratio(of func(Window) (numerator, denominator float64)) (Estimate, bool) {
	var numerator, denominator float64
	var quotients []float64
	for _, w := range m.Windows {
		a, b := of(w)
		if b > 0 {
			numerator, denominator = numerator+a, denominator+b
			quotients = append(quotients, a/b)
		}
	}
	if denominator == 0 {
		return Estimate{}, false
	}
	return around(numerator/denominator, stats.Mean(quotients)), true
}

// around centres the relative width of an interval on a value that was computed from the pooled sums.
func around(value float64, interval Estimate) Estimate {
	if interval.Value == 0 {
		return Estimate{Value: value, Lo: value, Hi: value}
	}
	scale := value / interval.Value
	return Estimate{Value: value, Lo: max(0, interval.Lo*scale), Hi: interval.Hi * scale}
}
