package load

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tuner/stats"
)

const (
	shortestWarmUp = 200 * time.Millisecond
	mserRequests   = 20   // below this MSER-5 has too few batches to work on
	trendGroups    = 20   // points of the trend test
	trendless      = 0.02 // a drift of 2 % over what was looked at is no trend
)

// isSteady judges a closed loop by its latencies, which Little's law ties to its throughput. It is steady when it has run
// for 0.2 s and 3 mean latencies, MSER-5 finds its transient in the first half, and the latencies after the transient have
// no trend: the interval of their Theil–Sen slope holds 0, or it amounts to less than 2 %.
func isSteady(records []record, elapsed time.Duration) bool {
	latencies := latenciesInOrder(records)
	if len(latencies) == 0 || elapsed < shortestWarmUp || elapsed.Seconds() < 3*stats.Mean(latencies).Value {
		return false
	}
	if len(latencies) >= mserRequests {
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

// latenciesInOrder lists the latencies of the completed requests in seconds, in the order of completion.
func latenciesInOrder(records []record) []float64 {
	ordered := slices.SortedStableFunc(slices.Values(records), func(a, b record) int { return cmp.Compare(a.end, b.end) })
	latencies := make([]float64, 0, len(ordered))
	for _, r := range ordered {
		if r.outcome == completed {
			latencies = append(latencies, r.latency.Seconds())
		}
	}
	return latencies
}

// latencyQuantile is the q-quantile of the completed requests' latencies; 0 when there are none.
func latencyQuantile(records []record, q float64) time.Duration {
	latencies := latenciesInOrder(records)
	if len(latencies) == 0 {
		return 0
	}
	slices.Sort(latencies)
	return time.Duration(stats.Quantile(latencies, q) * float64(time.Second))
}
