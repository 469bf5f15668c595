package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

const (
	// fewestForLongRun is the shortest series whose long-run variance can be told from noise at all.
	fewestForLongRun = 8
	// fewestCosines keeps Student's quantile finite and small: t(4) is 2.8, t(2) is 4.3.
	fewestCosines = 4
	// strongest bounds the autocorrelation that is believed: a short series cannot tell 0.95 from 1.
	strongest = 0.95
)

// longRun is the long-run variance of a steady series, the sum of its autocovariances at all lags, with the degrees of freedom of
// that estimate. The variance of the mean of n values is variance/n.
type longRun struct {
	variance, df float64
}

// longRunVariance estimates the long-run variance as the mean square of the first ν cosine coefficients of the series, whose spectrum
// near zero it is. It is false below 8 values.
//
// Source: Lazarus, Lewis, Stock and Watson, HAR Inference: Recommendations for Practice, JBES 36 (2018), who take ν = 0.4·n^(2/3). With
// n values of lag-1 autocorrelation 0.8 that bandwidth reaches beyond the flat part of the spectrum, so n is replaced by EffectiveCount
// here: intervals from 100 such values then cover 94 % where theirs cover 90 %, for intervals that are a sixth wider.
func longRunVariance(series []float64) (longRun, bool) {
	if len(series) < fewestForLongRun {
		return longRun{}, false
	}
	return cosineVariance(series, cosines(EffectiveCount(series))), true
}

// cosines is the number of cosine coefficients to average for n values.
func cosines(n float64) int {
	return max(fewestCosines, int(math.Round(0.4*math.Pow(n, 2.0/3))))
}

// cosineVariance is the mean square of the first count coefficients of the series' cosine transform (type II, orthonormal).
func cosineVariance(series []float64, count int) longRun {
	n := float64(len(series))
	sum := 0.0
	for j := 1; j <= count; j++ {
		coefficient := 0.0
		for t, v := range series {
			coefficient += v * math.Cos(math.Pi*float64(j)*(float64(t)+0.5)/n)
		}
		sum += coefficient * coefficient * 2 / n
	}
	return longRun{variance: sum / float64(count), df: float64(count)}
}

// EffectiveCount is how many independent values a mean of n autocorrelated ones is worth: n·(1−ρ)/(1+ρ), where ρ is the
// lag-1 autocorrelation of a first-order autoregressive series, taken as [0, 0.95].
func EffectiveCount(series []float64) float64 {
	rho := min(max(Autocorrelation(series), 0), strongest)
	return float64(len(series)) * (1 - rho) / (1 + rho)
}

// SeriesRatio is Σa/Σb of two steady series of equal length whose values may depend on those before, such as summed latencies and
// counts, or counts and seconds. Its interval is Student's for the mean of the linearised residuals a − (Σa/Σb)·b, with the long-run
// variance, or below 8 values with the variance, as if they were independent. Values beyond the shorter series are ignored. The zero
// Estimate when b sums to zero.
//
// Source: Cochran, Sampling Techniques, §6.3.
func SeriesRatio(a, b []float64) Estimate {
	n := min(len(a), len(b))
	var sumA, sumB float64
	for i := range n {
		sumA, sumB = sumA+a[i], sumB+b[i]
	}
	if sumB == 0 {
		return Estimate{}
	}
	ratio := sumA / sumB
	residuals := make([]float64, n)
	for i := range residuals {
		residuals[i] = a[i] - ratio*b[i]
	}
	half := meanError(residuals) * float64(n) / math.Abs(sumB)
	return Estimate{ratio, ratio - half, ratio + half}
}

// meanError is half the width of the interval of a steady series' mean; 0 for a single value, which tells nothing of it.
func meanError(series []float64) float64 {
	n := float64(len(series))
	if n < 2 {
		return 0
	}
	long, ok := longRunVariance(series)
	if !ok {
		long = longRun{variance: stat.Variance(series, nil), df: n - 1}
	}
	return TQuantile(1-tail, long.df) * math.Sqrt(long.variance/n)
}
