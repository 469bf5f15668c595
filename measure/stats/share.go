package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// mostEffective bounds how much more than independent values correlated ones may be worth. Negative dependence is real (a
// slow request is followed by a fast one), but an estimate of it is noisy: without a bound it would promise too much, with the usual
// bound of 1 intervals from independent values cover 98 %.
const mostEffective = 3

// EffectiveSize is how many independent values would tell as much about a share as the given ones do, which come in slices of time:
// hits[i] of sizes[i] have the property. It is n/deff·(z/t(ν))², where deff is the long-run variance of the residuals hits − p·sizes
// over that of independent values, and the last factor pays for estimating it. Between 1 and 3·n; n itself where nothing can be
// estimated: below 8 slices, or when all or none have the property.
//
// Source: Korn and Graubard, Confidence Intervals for Proportions with Small Expected Number of Positive Counts Estimated from Survey
// Data, Survey Methodology 24 (1998).
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

// QuantileRanks returns the ranks lo ≤ hi (1-based) of n values in ascending order between which the q-quantile lies with 95 %
// confidence, when the values are worth the effective number of independent ones (EffectiveSize): those of OrderRanks, scaled. lo =
// 0 and hi = n+1 say that there is no bound on that side.
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
