package measure

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"

	"tuner/measure/stats"
)

// Estimate is a metric's value with its 95 % confidence interval. Lo = Hi = Value when no interval
// can be computed.
type Estimate = stats.Estimate

// Estimate returns a metric over all windows of the measurement together, with its 95 % interval:
//
//   - Throughput and mean latency come from the series of sub-windows, with its autocorrelation.
//   - A goodput comes from the same series, without the requests that took longer than its limit.
//   - Latency percentiles come from Percentile.
//   - The server's parts, CPU, GPUs and energy get their intervals from the differences between
//     windows.
//   - Memory is a single peak, without an interval.
//
// It returns false when the measurement does not have the metric: no windows, a server without
// statistics, or unknown memory, CPU, GPUs or energy. Without a completed request there are no
// latencies, but throughput is 0. Cost needs a price, which a measurement does not have.
//
// A metric of one of several models comes from that model's windows. Without a name, the throughput is
// the sum of the models', and the error rate the largest of theirs. Latencies and parts of them have
// no sum.
func (m Measurement) Estimate(metric Metric) (Estimate, bool) {
	if len(m.Windows) == 0 {
		return Estimate{}, false
	}
	if model, of := metric.Split(); model != "" {
		return m.Of(model).ofOne(of)
	}
	if m.Windows[0].Model != "" {
		return m.ofAll(metric)
	}
	return m.ofOne(metric)
}

// ofOne is Estimate for the windows of one model.
func (m Measurement) ofOne(metric Metric) (Estimate, bool) {
	if len(m.Windows) == 0 {
		return Estimate{}, false
	}
	if q, ok := metric.Quantile(); ok {
		return m.Percentile(q)
	}
	if limit, ok := metric.Within(); ok {
		return m.rateWithin(limit)
	}
	switch metric {
	case Throughput:
		return m.rateWithin(anyLatency)
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

// Estimates returns the estimates of several metrics, without those that the measurement does not
// have. It merges the latencies once for all metrics.
func (m Measurement) Estimates(metrics []Metric) map[Metric]Estimate {
	estimates := make(map[Metric]Estimate, len(metrics))
	all := m.latencies()
	isOne := len(m.Windows) == 0 || m.Windows[0].Model == ""
	estimate := func(metric Metric) (Estimate, bool) {
		if q, ok := metric.Quantile(); ok && isOne {
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

// Value returns the value of Estimate. It does not compute the interval, which takes most of the
// time.
func (m Measurement) Value(metric Metric) (float64, bool) {
	model, of := metric.Split()
	switch {
	case model != "":
		m, metric = m.Of(model), of
	case len(m.Windows) > 0 && m.Windows[0].Model != "":
		e, ok := m.ofAll(metric)
		return e.Value, ok
	}
	if metric == Throughput {
		return m.rate(anyLatency)
	}
	if limit, ok := metric.Within(); ok {
		return m.rate(limit)
	}
	if q, ok := metric.Quantile(); ok {
		all := m.Latencies()
		return all.Quantile(q).Seconds(), all.Count() > 0
	}
	e, ok := m.ofOne(metric)
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

// Dropped is the number of requests of an open loop in all windows that were never sent.
func (m Measurement) Dropped() int {
	n := 0
	for _, w := range m.Windows {
		n += w.Dropped
	}
	return n
}

// IsEmpty reports whether a model got no request in the windows, and answered none. In an open loop of few requests that
// happens by chance, and tells nothing of the server.
func (m Measurement) IsEmpty(l Load) bool {
	models := m.Models()
	if len(models) == 0 {
		models = []string{""}
	}
	return slices.ContainsFunc(models, func(model string) bool {
		windows := m.Of(model).Windows
		came := slices.ContainsFunc(windows, func(w Window) bool { return w.Scheduled+w.Requests+w.Errors > 0 })
		return l.Of(model).RequestRate > 0 && len(windows) > 0 && !came
	})
}

// errorRate returns the share of the windows' requests that failed or were dropped, without an
// interval. It returns false when there were no requests.
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

// Offered returns the request rate of an open loop's schedule in requests per second. In a closed
// loop it is 0.
func (m Measurement) Offered() float64 {
	var scheduled int
	var duration time.Duration
	for _, w := range m.Windows {
		scheduled += w.Scheduled
	}
	for _, w := range m.Whole().Windows {
		duration += w.Duration
	}
	if duration <= 0 {
		return 0
	}
	return float64(scheduled) / duration.Seconds()
}

// Std returns the standard deviation of all latencies. It is 0 for fewer than two.
func (m Measurement) Std() time.Duration { return m.Latencies().Std() }

// anyLatency is the limit of a throughput: every answer counts.
const anyLatency time.Duration = math.MaxInt64

// rate pools the time of the windows, and the inferences that were answered within a limit. It
// ignores turns in which nothing ended, unless all windows are such turns.
func (m Measurement) rate(limit time.Duration) (float64, bool) {
	var inferences float64
	var telling, all time.Duration
	for i := range m.Windows {
		w := &m.Windows[i]
		all += w.Duration
		if !w.isEmpty() {
			inferences, telling = inferences+w.served()*w.shareWithin(limit), telling+w.Duration
		}
	}
	if all <= 0 {
		return 0, false
	}
	return inferences / cmp.Or(telling, all).Seconds(), true
}

// rateWithin returns rate with an interval from the rates of the sub-windows. A turn counts as one
// sub-window, since Little's law needs all of it. So does a window of whole periods, whose schedule
// makes its sub-windows differ.
func (m Measurement) rateWithin(limit time.Duration) (Estimate, bool) {
	rate, ok := m.rate(limit)
	if !ok {
		return Estimate{}, false
	}
	n := m.subWindows()
	requests, seconds := make([]float64, 0, n), make([]float64, 0, n)
	for _, w := range m.Windows {
		if w.Turn || w.Periods > 0 {
			if !w.isEmpty() {
				requests, seconds = append(requests, w.served()*w.shareWithin(limit)), append(seconds, w.Duration.Seconds())
			}
			continue
		}
		for _, s := range w.Sub {
			requests = append(requests, float64(s.within(limit))*perRequest(w))
			seconds = append(seconds, cmp.Or(s.Duration, w.Duration/time.Duration(len(w.Sub))).Seconds())
		}
	}
	return around(rate, stats.SeriesRatio(requests, seconds)), true
}

// perRequest returns the number of inferences per request of the window. It is 1 if none completed.
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
	sums, counts := m.latencySums()
	e := stats.SeriesRatio(sums, counts)
	e.Lo = max(0, e.Lo)
	return e, floats.Sum(counts) > 0
}

// latencySums returns the sum of the latencies in seconds and their number, of each sub-window.
func (m Measurement) latencySums() (sums, counts []float64) {
	n := m.subWindows()
	sums, counts = make([]float64, 0, n), make([]float64, 0, n)
	for _, w := range m.Windows {
		for _, s := range w.Sub {
			count := s.Latency.Count()
			sum := s.Sum
			if sum == 0 { // files of earlier versions have no sums
				sum = time.Duration(count) * s.Latency.Mean()
			}
			sums, counts = append(sums, sum.Seconds()), append(counts, float64(count))
		}
	}
	return sums, counts
}

// Percentile returns the q-quantile (0 < q < 1) of all latencies. Its interval uses order
// statistics of an effective number of independent latencies. stats.EffectiveSize estimates that
// number from the share of latencies up to the quantile in each sub-window. It counts executed
// batches, since the requests of a batch end together.
//
// Percentile returns false when no request completed. Where Bounded is false, Hi is only the
// largest latency seen.
func (m Measurement) Percentile(q float64) (Estimate, bool) { return m.percentile(m.latencies(), q) }

func (m Measurement) percentile(l latencies, q float64) (Estimate, bool) {
	if l.all.Count() == 0 {
		return Estimate{}, false
	}
	lo, hi := m.ranks(l, q)
	return Estimate{Value: l.all.Quantile(q).Seconds(), Lo: l.all.Rank(lo).Seconds(), Hi: l.all.Rank(hi).Seconds()}, true
}

// Bounded reports whether there were enough requests for an upper bound of the q-quantile.
func (m Measurement) Bounded(q float64) bool {
	l := m.latencies()
	_, hi := m.ranks(l, q)
	return hi <= l.all.Count()
}

// ranks returns the ranks of the latencies between which the q-quantile lies (stats.QuantileRanks).
func (m Measurement) ranks(l latencies, q float64) (lo, hi int) {
	return stats.QuantileRanks(l.all.Count(), m.effective(l, q), q)
}

// effective returns the number of independent latencies that estimate the q-quantile as precisely
// (stats.EffectiveSize).
func (m Measurement) effective(l latencies, q float64) float64 {
	value, batch := l.all.Quantile(q), m.batchRequests()
	hits, sizes := make([]float64, len(l.parts)), make([]float64, len(l.parts)) // in executed batches
	for i, part := range l.parts {
		hits[i], sizes[i] = float64(part.CountAtMost(value))/batch, float64(part.Count())/batch
	}
	return stats.EffectiveSize(hits, sizes)
}

// Latencies returns the distribution of all latencies of all windows.
func (m Measurement) Latencies() Histogram { return m.latencies().all }

// latencies holds the latencies of a measurement, by sub-window and all together.
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

// Batches returns the mean size of the executed batches, and the mean time of one in its instance in seconds.
// Both are 0 if nothing was executed, or the server does not tell.
func (m Measurement) Batches() (size, seconds float64) {
	var all ServerStats
	var busy time.Duration
	for _, w := range m.Windows {
		all.Inferences += w.Server.Inferences
		all.Executions += w.Server.Executions
		busy += w.Server.InstanceTime()
	}
	return all.MeanBatch(), busy.Seconds() / float64(max(all.Executions, 1))
}

// BatchTimes lists the times of the executed batches by their size, ascending. Of the time for inputs and outputs,
// which the server does not tell by size, each has the same share. It is empty if the server tells none.
func (m Measurement) BatchTimes() []BatchTime {
	infer, executions := map[int]time.Duration{}, map[int]int{}
	var busy, all time.Duration
	for _, w := range m.Windows {
		busy += w.Server.InstanceTime()
		for _, b := range w.Server.Batches {
			infer[b.Size] += b.ComputeInfer
			executions[b.Size] += b.Executions
			all += b.ComputeInfer
		}
	}
	var list []BatchTime
	for _, size := range slices.Sorted(maps.Keys(infer)) {
		if n := executions[size]; n > 0 && infer[size] > 0 {
			list = append(list, BatchTime{size, n, infer[size].Seconds() / float64(n) * busy.Seconds() / all.Seconds()})
		}
	}
	return list
}

// batchRequests returns the mean number of requests in an executed batch, at least 1.
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

// serverPart returns the mean of a part of the requests' time in the server.
func (m Measurement) serverPart(part func(ServerStats) time.Duration) (Estimate, bool) {
	return m.ratio(func(w Window) (float64, float64) { return part(w.Server).Seconds(), float64(w.Server.Requests) })
}

// ratio returns the quotient of two sums over the windows. The interval comes from the quotients of
// the single windows. A window whose denominator is zero has no quotient, but adds to the sums.
// ratio returns false when the denominators of all windows are zero.
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

// around centres the relative width of an interval on a value from pooled sums.
func around(value float64, interval Estimate) Estimate {
	if interval.Value == 0 {
		return Estimate{Value: value, Lo: value, Hi: value}
	}
	scale := value / interval.Value
	return Estimate{Value: value, Lo: max(0, interval.Lo*scale), Hi: interval.Hi * scale}
}

// Little returns the throughput of a closed loop by Little's law (Window.Little), in inferences per
// second. In short windows its error is about half that of the completed requests, or less
// (TestLittleIsCloserThanCounting). Its interval has the relative width of the mean latency's, from
// the sub-windows in which requests completed. It returns false if fewer than two of them did, and
// where Window.Little does.
//
// Requests that wait behind the same executions have similar latencies. So a sub-window that is
// shorter than the latency repeats a part of what the one before shows. A short series does not
// show that dependence. The interval therefore counts the variance as often as sub-windows overlap.
func (m Measurement) Little() (Estimate, bool) {
	inferences, seconds := 0.0, 0.0
	for _, w := range m.Windows {
		if w.isEmpty() {
			continue
		}
		rate, ok := w.Little()
		if !ok {
			return Estimate{}, false
		}
		inferences, seconds = inferences+rate*w.Duration.Seconds(), seconds+w.Duration.Seconds()
	}
	all, numbers := m.latencySums()
	var sums, counts []float64
	for i, n := range numbers {
		if n > 0 {
			sums, counts = append(sums, all[i]), append(counts, n)
		}
	}
	if len(sums) < 2 || seconds <= 0 {
		return Estimate{}, false
	}
	latency := stats.SeriesRatio(sums, counts)
	overlap := latency.Value / (seconds / float64(len(sums)))
	half := (latency.Hi - latency.Value) * math.Sqrt(max(1, overlap))
	return around(inferences/seconds, Estimate{Value: latency.Value, Lo: latency.Value - half, Hi: latency.Value + half}), true
}
