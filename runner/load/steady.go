package load

import (
	"math"
	"slices"
	"time"

	"tuner/measure"
	"tuner/measure/stats"
)

const (
	shortestWarmUp = 200 * time.Millisecond
	mserValues     = 20   // with fewer values MSER-5 has too few batches
	trendGroups    = 20   // points of the trend test
	trendless      = 0.02 // a drift of less than 2 % over the values is no trend
)

// Latencies of the warm-up are averaged in bins. There are at most mostBins.
const (
	finestBin = time.Millisecond
	mostBins  = 600
)

// warmUp gathers the latencies since an instant, by the end of the requests. It has means in bins
// of equal width, which doubles when there are too many bins. It also has the distribution of the
// later latencies.
type warmUp struct {
	from, width time.Duration
	counts      []int
	sums        []time.Duration

	recent, earlier *measure.Recorder // those since mark/2, and before them those since mark/4
	mark            time.Duration     // time since from at which recent becomes earlier

	good, failures int // completed and failed requests of the session before it
}

func newWarmUp(from time.Duration) *warmUp {
	return &warmUp{from: from, width: finestBin, recent: measure.NewRecorder(), earlier: measure.NewRecorder(), mark: finestBin}
}

// addLatency counts a request that ended at an instant.
func (w *warmUp) addLatency(end, latency time.Duration) {
	at := max(0, end-w.from)
	for ; at >= w.mark; w.mark *= 2 {
		w.recent, w.earlier = w.earlier, w.recent
		w.recent.Reset()
	}
	w.recent.Record(latency)
	for at/w.width >= mostBins {
		w.halve()
	}
	i := int(at / w.width)
	for len(w.counts) <= i {
		w.counts, w.sums = append(w.counts, 0), append(w.sums, 0)
	}
	w.counts[i]++
	w.sums[i] += latency
}

// halve joins the bins in pairs.
func (w *warmUp) halve() {
	n := (len(w.counts) + 1) / 2
	for i := range n {
		count, sum := w.counts[2*i], w.sums[2*i]
		if 2*i+1 < len(w.counts) {
			count, sum = count+w.counts[2*i+1], sum+w.sums[2*i+1]
		}
		w.counts[i], w.sums[i] = count, sum
	}
	w.counts, w.sums = w.counts[:n], w.sums[:n]
	w.width *= 2
}

// quantile returns the q-quantile of the latencies in the later part of the warm-up. That part
// begins after at least a quarter of it, so that it has no cold requests. 0: there are none.
func (w *warmUp) quantile(q float64) time.Duration {
	return measure.Merge(w.earlier.Histogram(), w.recent.Histogram()).Quantile(q)
}

// isSteady judges a load by its latencies, which Little's law ties to its throughput. The load is
// steady under three conditions:
//
//   - It has run for 0.2 s and 3 mean latencies.
//   - MSER-5 finds its transient in the first half.
//   - The latencies after the transient have no trend: the interval of their Theil–Sen slope
//     includes 0, or the slope amounts to less than 2 %.
func (w *warmUp) isSteady(elapsed time.Duration) bool {
	latencies, mean := w.latencies()
	if len(latencies) == 0 || elapsed < shortestWarmUp || elapsed.Seconds() < 3*mean {
		return false
	}
	if len(latencies) >= mserValues {
		transient, found := stats.WarmUpEnd(latencies)
		if !found {
			return false
		}
		latencies = latencies[transient:]
	}
	var points []float64
	for group := range slices.Chunk(latencies, int(math.Ceil(float64(len(latencies))/trendGroups))) {
		points = append(points, stats.Mean(group).Value)
	}
	slope := stats.Slope(points)
	drift := math.Abs(slope.Value) * float64(len(points)) / stats.Median(points)
	return slope.Lo <= 0 && 0 <= slope.Hi || drift < trendless
}

// latencies returns the mean latency in seconds of each bin with requests, and the mean of all
// requests.
func (w *warmUp) latencies() (means []float64, mean float64) {
	var count int
	var sum time.Duration
	for i, n := range w.counts {
		if n == 0 {
			continue
		}
		means = append(means, w.sums[i].Seconds()/float64(n))
		count, sum = count+n, sum+w.sums[i]
	}
	return means, sum.Seconds() / float64(max(1, count))
}
