package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Next returns the interval that has the next one of independent values with a probability of 95 %,
// from a normal distribution of which some were seen: mean ± t(n−1) · s · √(1 + 1/n). With fewer than
// two values nothing is known of the next, and it is false.
//
// Source: Hahn and Meeker, Statistical Intervals (1991), §4.8, with one future observation.
func Next(values []float64) (Estimate, bool) {
	n := float64(len(values))
	if n < 2 {
		return Estimate{}, false
	}
	mean, variance := stat.MeanVariance(values, nil)
	half := TQuantile(1-tail, n-1) * math.Sqrt(variance*(1+1/n))
	return Estimate{mean, mean - half, mean + half}, true
}

// Difference returns the difference of the means of two independent groups, a − b, with its 95 % interval.
// The groups may have different variances. It is false if one has fewer than two values.
//
// Source: Welch (1947); the degrees of freedom are Satterthwaite's (1946).
func Difference(a, b []float64) (Estimate, bool) {
	if len(a) < 2 || len(b) < 2 {
		return Estimate{}, false
	}
	meanA, varianceA := stat.MeanVariance(a, nil)
	meanB, varianceB := stat.MeanVariance(b, nil)
	partA, partB := varianceA/float64(len(a)), varianceB/float64(len(b))
	d, sum := meanA-meanB, partA+partB
	if sum == 0 {
		return Estimate{d, d, d}, true
	}
	freedom := sum * sum / (partA*partA/float64(len(a)-1) + partB*partB/float64(len(b)-1))
	half := TQuantile(1-tail, freedom) * math.Sqrt(sum)
	return Estimate{d, d - half, d + half}, true
}
