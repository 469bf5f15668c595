package stats

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// OrderRanks returns the ranks lo ≤ hi (1-based) of n independent values in ascending order between which the
// q-quantile (0 < q < 1) lies with at least 95 % confidence, whatever the distribution. lo = 0 says that n is too small
// for a lower bound, hi = n+1 that it is too small for an upper one.
//
// Source: the number of values below the quantile is Binomial(n, q) (Hahn and Meeker, Statistical Intervals, §5.2).
func OrderRanks(n int, q float64) (lo, hi int) {
	below := distuv.Binomial{N: float64(n), P: q}
	// The smallest k with P(count ≤ k) > 2.5 %: the k-th value is then above the quantile with at most 2.5 %.
	lo = sort.Search(n, func(k int) bool { return below.CDF(float64(k)) > tail })
	// The smallest k with P(count ≥ k) ≤ 2.5 %: the k-th value is then below the quantile with at most 2.5 %.
	hi = sort.Search(n+1, func(k int) bool { return k > 0 && 1-below.CDF(float64(k-1)) <= tail })
	return lo, hi
}

// OrderSamples is how many independent values OrderRanks needs to bound the q-quantile (0.5 ≤ q < 1) from above:
// q^n ≤ 2.5 %, so 368 for the 99th percentile.
func OrderSamples(q float64) int {
	return int(math.Ceil(math.Log(tail) / math.Log(q)))
}
