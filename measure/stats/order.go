package stats

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// OrderRanks returns ranks lo ≤ hi (1-based) in the ascending order of n independent values. The
// q-quantile (0 < q < 1) lies between these ranks with at least 95 % confidence, for every
// distribution. lo = 0 means that n is too small for a lower bound; hi = n+1 means that it is too
// small for an upper bound.
//
// Source: the number of values below the quantile is Binomial(n, q) (Hahn and Meeker, Statistical
// Intervals, §5.2).
func OrderRanks(n int, q float64) (lo, hi int) {
	below := distuv.Binomial{N: float64(n), P: q}
	// The search begins near the ranks, so that it computes few sums of the distribution. The guess
	// is the normal quantile with Cornish and Fisher's correction for skewness (Moments and
	// Cumulants in the Specification of Distributions, 1938). Half a rank is subtracted since ranks
	// are whole numbers.
	z := distuv.UnitNormal.Quantile(1 - tail)
	middle := float64(n)*q + (z*z-1)/6*(1-2*q) - 0.5
	half := z * below.StdDev()
	// The smallest k with P(count ≤ k) > 2.5 %. The k-th value is above the quantile with a
	// probability of at most 2.5 %.
	lo = searchNear(n, int(math.Ceil(middle-half)), func(k int) bool { return below.CDF(float64(k)) > tail })
	// The smallest k with P(count ≥ k) ≤ 2.5 %. The k-th value is below the quantile with a
	// probability of at most 2.5 %.
	hi = searchNear(n+1, int(math.Ceil(middle+half))+1, func(k int) bool { return k > 0 && 1-below.CDF(float64(k-1)) <= tail })
	return lo, hi
}

// searchNear is sort.Search that begins at a guess, so that it calls f rarely if the guess is
// nearly right. It returns the smallest k, 0 ≤ k < n, from which on f is true, and n if f is never
// true.
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

// OrderSamples returns the number of independent values that OrderRanks needs to bound the
// q-quantile (0.5 ≤ q < 1) from above. The condition is q^n ≤ 2.5 %, so that the 99th percentile
// needs 368.
func OrderSamples(q float64) int {
	return int(math.Ceil(math.Log(tail) / math.Log(q)))
}
