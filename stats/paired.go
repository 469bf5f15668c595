package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// trim is the share of the values that a trimmed mean leaves out at each end.
const trim = 0.2

// PairedRatio estimates the ratio a/b from pairs of positive values that were measured next to each other: the 20 %
// trimmed mean of the log ratios, with Yuen's interval from their winsorized variance, taken back to a ratio. Up to 4
// pairs nothing can be trimmed, and it is Student's interval. Pairs beyond the shorter slice are ignored; the zero
// Estimate for no pairs.
//
// Source: Tukey and McLaughlin (1963), Yuen (1974); Wilcox, Introduction to Robust Estimation, §4.3.
func PairedRatio(a, b []float64) Estimate {
	logs := make([]float64, min(len(a), len(b)))
	for i := range logs {
		logs[i] = math.Log(a[i] / b[i])
	}
	if len(logs) == 0 {
		return Estimate{}
	}
	e := trimmedMean(logs)
	return Estimate{math.Exp(e.Value), math.Exp(e.Lo), math.Exp(e.Hi)}
}

// trimmedMean is the mean of independent values without the lowest and the highest 20 %, with Yuen's interval from their winsorized
// variance, so that no single value far off moves it. Up to 4 values nothing can be trimmed, and it is Mean. The zero Estimate for no
// values.
func trimmedMean(values []float64) Estimate {
	if len(values) == 0 {
		return Estimate{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	cut := int(trim * float64(n))
	kept := sorted[cut : n-cut]
	mean := stat.Mean(kept, nil)
	if len(kept) < 2 {
		return Estimate{mean, mean, mean}
	}
	winsorized := slices.Clone(sorted)
	for i := range cut {
		winsorized[i], winsorized[n-1-i] = kept[0], kept[len(kept)-1]
	}
	share := float64(len(kept)) / float64(n)
	half := TQuantile(1-tail, float64(len(kept)-1)) * stat.StdDev(winsorized, nil) / (share * math.Sqrt(float64(n)))
	return Estimate{mean, mean - half, mean + half}
}
