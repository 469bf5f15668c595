package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Autocorrelation returns the sample autocorrelation of the series at lag 1. It is 0 for a constant
// series and for fewer than 3 values.
func Autocorrelation(series []float64) float64 {
	if len(series) < 3 {
		return 0
	}
	mean := stat.Mean(series, nil)
	var products, squares float64
	for i, v := range series {
		squares += (v - mean) * (v - mean)
		if i > 0 {
			products += (v - mean) * (series[i-1] - mean)
		}
	}
	if squares == 0 {
		return 0
	}
	return products / squares
}

// Slope returns the Theil–Sen slope of a series per step: the median of the slopes of all pairs,
// which no single outlier moves. The interval is Sen's 95 % interval from Kendall's statistic. For
// fewer than 2 values Slope returns the zero Estimate.
//
// Source: Sen, Estimates of the Regression Coefficient Based on Kendall's Tau, JASA 63 (1968).
func Slope(series []float64) Estimate {
	n := len(series)
	if n < 2 {
		return Estimate{}
	}
	slopes := make([]float64, 0, n*(n-1)/2)
	for i := range series {
		for j := i + 1; j < n; j++ {
			slopes = append(slopes, (series[j]-series[i])/float64(j-i))
		}
	}
	slices.Sort(slopes)
	k := float64(n)
	spread := distuv.UnitNormal.Quantile(1-tail) * math.Sqrt(k*(k-1)*(2*k+5)/18)
	last := len(slopes) - 1
	lo := int(math.Floor((float64(len(slopes)) - spread) / 2))
	hi := int(math.Ceil((float64(len(slopes)) + spread) / 2))
	return Estimate{Quantile(slopes, 0.5), slopes[max(lo-1, 0)], slopes[min(hi, last)]}
}

// mserBatch is the number of values that MSER-5 averages before it searches for the end of the
// transient.
const mserBatch = 5

// WarmUpEnd returns the number of leading values that belong to the transient of a series, by the
// rule MSER-5. The rule averages batches of 5 values. It then chooses the truncation in the first
// half with the least standard error of the mean of the rest.
//
// found is false when that truncation is the middle itself, or when there are fewer than 20 values.
// Then the series is too short to tell.
//
// Source: White, An Effective Truncation Heuristic for Bias Reduction in Simulation Output,
// Simulation 69 (1997).
func WarmUpEnd(series []float64) (transient int, found bool) {
	batches := make([]float64, 0, len(series)/mserBatch)
	for batch := range slices.Chunk(series, mserBatch) {
		if len(batch) == mserBatch {
			batches = append(batches, stat.Mean(batch, nil))
		}
	}
	half := len(batches) / 2
	if half < 2 {
		return 0, false
	}
	best, least := 0, math.Inf(1)
	for d := 0; d <= half; d++ {
		rest := batches[d:]
		if score := stat.PopVariance(rest, nil) / float64(len(rest)); score < least {
			best, least = d, score
		}
	}
	return best * mserBatch, best < half
}
