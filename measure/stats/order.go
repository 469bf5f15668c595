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
	// About where the ranks are, so that few sums of the distribution are computed: the normal quantile with Cornish and Fisher's
	// correction for skewness (Moments and Cumulants in the Specification of Distributions, 1938), less a half for whole numbers.
	z := distuv.UnitNormal.Quantile(1 - tail)
	middle := float64(n)*q + (z*z-1)/6*(1-2*q) - 0.5
	half := z * below.StdDev()
	// The smallest k with P(count ≤ k) > 2.5 %: the k-th value is then above the quantile with at most 2.5 %.
	lo = searchNear(n, int(math.Ceil(middle-half)), func(k int) bool { return below.CDF(float64(k)) > tail })
	// The smallest k with P(count ≥ k) ≤ 2.5 %: the k-th value is then below the quantile with at most 2.5 %.
	hi = searchNear(n+1, int(math.Ceil(middle+half))+1, func(k int) bool { return k > 0 && 1-below.CDF(float64(k-1)) <= tail })
	return lo, hi
}

// searchNear is sort.Search that begins at a guess, so that it asks little where that is about right: the smallest k, 0 ≤ k < n, from which
// on f is true, n where there is none.
func searchNear(n, guess int, f func(int) bool) int {
	lo, hi := 0, n // the answer is one of lo … hi
	for at, step := min(max(guess, 0), n-1), 1; lo <= at && at < hi; step *= 2 {
		if f(at) {
			hi, at = at, at-step
		} else {
			lo, at = at+1, at+step
		}
	}
	return lo + sort.Search(hi-lo, func(i int) bool { return f(lo + i) })
}

// OrderSamples is how many independent values OrderRanks needs to bound the q-quantile (0.5 ≤ q < 1) from above:
// q^n ≤ 2.5 %, so 368 for the 99th percentile.
func OrderSamples(q float64) int {
	return int(math.Ceil(math.Log(tail) / math.Log(q)))
}
