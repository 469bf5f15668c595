package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// trim is the share of the values that a trimmed mean leaves out at each end.
const trim = 0.2

// PairedRatio estimates the ratio a/b from pairs of positive values that were measured next to each
// other. It is the exponential of the 20 % trimmed mean of the log ratios, with Yuen's interval
// from their winsorized variance. With up to 4 pairs nothing can be trimmed, so the interval is
// Student's. PairedRatio ignores pairs beyond the end of the shorter slice. Without pairs it
// returns the zero Estimate.
//
// Source: Tukey and McLaughlin (1963), Yuen (1974); Wilcox, Introduction to Robust Estimation,
// §4.3.
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

// trimmedMean returns the mean without the lowest and the highest 20 %, with its 95 % interval.
func trimmedMean(values []float64) Estimate {
	t := TrimmedMean(values, trim)
	half := 0.0
	if t.Freedom > 0 {
		half = TQuantile(1-tail, float64(t.Freedom)) * t.Error
	}
	return Estimate{t.Mean, t.Mean - half, t.Mean + half}
}

// Trimmed is a trimmed mean with the error and the degrees of freedom for Student's intervals and
// tests.
type Trimmed struct {
	Mean    float64
	Error   float64 // standard error; 0 if Freedom is 0
	Freedom int     // degrees of freedom; 0 when the error is unknown
}

// TrimmedMean returns the mean of independent values without the lowest and the highest part (0 to
// less than 0.5) of them. Its standard error is Yuen's, from the winsorized variance, so that a
// single value far off hardly matters. If part is less than one value, TrimmedMean returns the
// plain mean. Without values it returns the zero Trimmed.
func TrimmedMean(values []float64, part float64) Trimmed {
	if len(values) == 0 {
		return Trimmed{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	cut := int(part * float64(n))
	kept := sorted[cut : n-cut]
	mean := stat.Mean(kept, nil)
	if len(kept) < 2 {
		return Trimmed{Mean: mean}
	}
	winsorized := slices.Clone(sorted)
	for i := range cut {
		winsorized[i], winsorized[n-1-i] = kept[0], kept[len(kept)-1]
	}
	share := float64(len(kept)) / float64(n)
	return Trimmed{mean, stat.StdDev(winsorized, nil) / (share * math.Sqrt(float64(n))), len(kept) - 1}
}
