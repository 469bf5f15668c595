package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// mostEffective bounds the gain from negative correlation: n correlated values count as at most 3·n
// independent ones. Negative dependence is real: a fast request follows a slow one. But its
// estimate is noisy, and without a bound intervals would be too narrow. With the usual bound of 1,
// intervals from independent values cover 98 %.
const mostEffective = 3

// EffectiveSize returns the number of independent values that would estimate a share as precisely
// as the given values, which come in slices of time. hits[i] of sizes[i] values have the property.
//
// It is n/deff·(z/t(ν))². deff is the long-run variance of the residuals hits − p·sizes, over the
// variance of independent values. The last factor pays for estimating it. The result lies between 1
// and 3·n. It is n where nothing can be estimated: below 8 slices, or when all values or none have
// the property.
//
// Source: Korn and Graubard, Confidence Intervals for Proportions with Small Expected Number of
// Positive Counts Estimated from Survey Data, Survey Methodology 24 (1998).
func EffectiveSize(hits, sizes []float64) float64 {
	var sumHits, n float64
	for i := range sizes {
		sumHits, n = sumHits+hits[i], n+sizes[i]
	}
	slices := len(sizes)
	if slices < fewestForLongRun || sumHits <= 0 || sumHits >= n {
		return max(1, n)
	}
	p := sumHits / n
	residuals := make([]float64, slices)
	for i := range residuals {
		residuals[i] = hits[i] - p*sizes[i]
	}
	long := cosineVariance(residuals, cosines(float64(slices)))
	effect := float64(slices) * long.variance / (n * p * (1 - p))
	paid := distuv.UnitNormal.Quantile(1-tail) / TQuantile(1-tail, long.df)
	return min(max(1, n/effect*paid*paid), mostEffective*n)
}

// QuantileRanks returns ranks lo ≤ hi (1-based) in the ascending order of n values. The q-quantile
// lies between these ranks with 95 % confidence. The values are worth the effective number of
// independent ones (EffectiveSize), so the ranks are those of OrderRanks for that number, scaled to
// n. lo = 0 and hi = n+1 mean that there is no bound on that side.
func QuantileRanks(n int, effective, q float64) (lo, hi int) {
	independent := max(1, int(effective))
	lo, hi = OrderRanks(independent, q)
	scale := float64(n) / float64(independent)
	if hi > independent {
		hi = n + 1
	} else {
		hi = min(n, int(math.Ceil(float64(hi)*scale)))
	}
	if lo > 0 {
		lo = max(1, int(math.Round(float64(lo)*scale)))
	}
	return lo, hi
}
