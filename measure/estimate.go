package measure

import (
	"cmp"
	"slices"
	"time"

	"tuner/measure/stats"
)

// Estimate is a metric's value with its 95 % confidence interval. Lo = Hi = Value when no interval can be computed.
type Estimate = stats.Estimate

// Estimate returns a metric over all windows of the measurement taken together, with its 95 % interval:
//   - throughput and mean latency from the sub-windows' series, whatever its autocorrelation;
//   - latency percentiles as Percentile has them;
//   - the server's parts, CPU, GPUs and energy from the differences between windows;
//   - memory, a single peak, without an interval.
//
// It is false when the measurement does not tell: no windows, no completed request (but throughput is then 0), a server
// without statistics, unknown memory, CPU, GPUs or energy. Cost takes a price, which no measurement has.
func (m Measurement) Estimate(metric Metric) (Estimate, bool) {
	if len(m.Windows) == 0 {
		return Estimate{}, false
	}
	if q, ok := metric.Quantile(); ok {
		return m.Percentile(q)
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
	case GPUMemory:
		return m.gpuMemory()
	case GPUUtilization:
		return m.gpuUtilization()
	case GPUPower:
		return m.gpuPower()
	case Energy:
		return m.energy()
	}
	return Estimate{}, false
}

// Estimates are those of several metrics, without the ones that the measurement does not tell. The latencies are merged once for all of them.
func (m Measurement) Estimates(metrics []Metric) map[Metric]Estimate {
	estimates := make(map[Metric]Estimate, len(metrics))
	all := m.latencies()
	estimate := func(metric Metric) (Estimate, bool) {
		if q, ok := metric.Quantile(); ok {
			return m.percentile(all, q)
		}
		return m.Estimate(metric)
	}
	for _, metric := range metrics {
		if e, ok := estimate(metric); ok {
			estimates[metric] = e
		}
	}
	return estimates
}

// Value is the value of Estimate, without what its interval costs.
func (m Measurement) Value(metric Metric) (float64, bool) {
	if metric == Throughput {
		return m.rate()
	}
	if q, ok := metric.Quantile(); ok {
		all := m.Latencies()
		return all.Quantile(q).Seconds(), all.Count() > 0
	}
	e, ok := m.Estimate(metric)
	return e.Value, ok
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

// errorRate is the share of the windows' requests that failed or were dropped, without an interval; false when there were none.
func (m Measurement) errorRate() (Estimate, bool) {
	failed, all := 0, 0
	for _, w := range m.Windows {
		failed += w.Errors + w.Dropped
		all += w.Requests + w.Errors + w.Dropped
	}
	if all == 0 {
		return Estimate{}, false
	}
	rate := float64(failed) / float64(all)
	return Estimate{Value: rate, Lo: rate, Hi: rate}, true
}

// Offered is the request rate of an open loop's schedule in requests per second; 0 in a closed loop.
func (m Measurement) Offered() float64 {
	var scheduled int
	var duration time.Duration
	for _, w := range m.Windows {
		scheduled += w.Scheduled
		duration += w.Duration
	}
	if duration <= 0 {
		return 0
	}
	return float64(scheduled) / duration.Seconds()
}

// Std is the standard deviation of all latencies; 0 below two.
func (m Measurement) Std() time.Duration { return m.Latencies().Std() }

// rate pools the windows' inferences and time. A turn in which nothing ended counts only where all are such.
func (m Measurement) rate() (float64, bool) {
	var inferences float64
	var telling, all time.Duration
	for i := range m.Windows {
		w := &m.Windows[i]
		all += w.Duration
		if !w.isEmpty() {
			inferences, telling = inferences+w.served(), telling+w.Duration
		}
	}
	if all <= 0 {
		return 0, false
	}
	return inferences / cmp.Or(telling, all).Seconds(), true
}

// throughput is the rate, with an interval from those of the sub-windows; a turn counts as one, since Little's law needs all of it.
func (m Measurement) throughput() (Estimate, bool) {
	rate, ok := m.rate()
	if !ok {
		return Estimate{}, false
	}
	n := m.subWindows()
	requests, seconds := make([]float64, 0, n), make([]float64, 0, n)
	for _, w := range m.Windows {
		if w.Turn {
			if !w.isEmpty() {
				requests, seconds = append(requests, w.served()), append(seconds, w.Duration.Seconds())
			}
			continue
		}
		for _, s := range w.Sub {
			requests = append(requests, float64(s.Requests)*perRequest(w))
			seconds = append(seconds, cmp.Or(s.Duration, w.Duration/time.Duration(len(w.Sub))).Seconds())
		}
	}
	return around(rate, stats.SeriesRatio(requests, seconds)), true
}

// perRequest is how many inferences a request of the window has; 1 where none completed.
func perRequest(w Window) float64 {
	if w.Requests == 0 || w.Inferences == 0 {
		return 1
	}
	return float64(w.Inferences) / float64(w.Requests)
}

func (m Measurement) subWindows() int {
	n := 0
	for i := range m.Windows {
		n += len(m.Windows[i].Sub)
	}
	return n
}

// meanLatency pools the latencies of all sub-windows.
func (m Measurement) meanLatency() (Estimate, bool) {
	n, total := m.subWindows(), 0
	sums, counts := make([]float64, 0, n), make([]float64, 0, n)
	for _, w := range m.Windows {
		for _, s := range w.Sub {
			count := s.Latency.Count()
			sum := s.Sum
			if sum == 0 { // a file from before the sums were kept
				sum = time.Duration(count) * s.Latency.Mean()
			}
			sums, counts = append(sums, sum.Seconds()), append(counts, float64(count))
			total += count
		}
	}
	e := stats.SeriesRatio(sums, counts)
	e.Lo = max(0, e.Lo)
	return e, total > 0
}

// Percentile is the q-quantile (0 < q < 1) of all latencies, with an interval by order statistics of as many independent values as the
// shares of latencies up to the quantile in the sub-windows are worth (stats.EffectiveSize). What is counted there are executed
// batches, since the requests of a batch end together. It is false when no request completed. Where Bounded is false, Hi is only the
// largest latency seen.
func (m Measurement) Percentile(q float64) (Estimate, bool) { return m.percentile(m.latencies(), q) }

func (m Measurement) percentile(l latencies, q float64) (Estimate, bool) {
	if l.all.Count() == 0 {
		return Estimate{}, false
	}
	lo, hi := m.ranks(l, q)
	return Estimate{Value: l.all.Quantile(q).Seconds(), Lo: l.all.Rank(lo).Seconds(), Hi: l.all.Rank(hi).Seconds()}, true
}

// Bounded reports whether there were requests enough for an upper bound of the q-quantile.
func (m Measurement) Bounded(q float64) bool {
	l := m.latencies()
	_, hi := m.ranks(l, q)
	return hi <= l.all.Count()
}

// ranks are those of the latencies between which the q-quantile lies (stats.QuantileRanks).
func (m Measurement) ranks(l latencies, q float64) (lo, hi int) {
	return stats.QuantileRanks(l.all.Count(), m.effective(l, q), q)
}

// effective is how many independent latencies tell as much about the q-quantile (stats.EffectiveSize).
func (m Measurement) effective(l latencies, q float64) float64 {
	value, batch := l.all.Quantile(q), m.batchRequests()
	hits, sizes := make([]float64, len(l.parts)), make([]float64, len(l.parts)) // in executed batches
	for i, part := range l.parts {
		hits[i], sizes[i] = float64(part.CountAtMost(value))/batch, float64(part.Count())/batch
	}
	return stats.EffectiveSize(hits, sizes)
}

// Latencies is the distribution of all latencies, of all windows together.
func (m Measurement) Latencies() Histogram { return m.latencies().all }

// latencies are a measurement's, by sub-window and all together.
type latencies struct {
	parts []Histogram
	all   Histogram
}

func (m Measurement) latencies() latencies {
	parts := make([]Histogram, 0, m.subWindows())
	for _, w := range m.Windows {
		for _, s := range w.Sub {
			parts = append(parts, s.Latency)
		}
	}
	return latencies{parts, Merge(parts...)}
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

// ratio is the quotient of two sums over the windows, with the interval that the windows' own quotients give. A window whose denominator is zero
// has none, but its part in the sums. It is false when every window's denominator is zero.
func (m Measurement) ratio(of func(Window) (numerator, denominator float64)) (Estimate, bool) {
	var numerator, denominator float64
	var quotients []float64
	for _, w := range m.Windows {
		a, b := of(w)
		numerator, denominator = numerator+a, denominator+b
		if b > 0 {
			quotients = append(quotients, a/b)
		}
	}
	if denominator <= 0 {
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
