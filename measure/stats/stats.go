// Package stats holds the statistics that judge measurements. It has means, ratios and quantiles
// with intervals that allow for autocorrelation. It also has trends, paired ratios, block designs,
// and tests with more than one look. Everything is a function of numbers. It stands below measure
// and knows neither units nor clocks. It never drops a value: the caller decides about a bad window.
package stats

import (
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Half95 is half of the width of a normal distribution's 95 % interval, in standard deviations.
const Half95 = 1.959964

// Estimate is a value with its 95 % confidence interval. Lo = Hi = Value when no interval can be
// computed.
type Estimate struct {
	Value, Lo, Hi float64
}

// Half returns half of the width of the interval. Where the upper end is cut off, as that of a rate at what clients offer
// (measure.Load.Bounded), the lower half tells the error.
func (e Estimate) Half() float64 { return max((e.Hi-e.Lo)/2, e.Value-e.Lo) }

// tail is the probability on each side of a 95 % interval.
const tail = 0.025

// TQuantile is the p-quantile of Student's t distribution with df > 0 degrees of freedom.
func TQuantile(p, df float64) float64 {
	if n := int(df); p == 1-tail && df == float64(n) && 0 < n && n <= mostTabled {
		return tTable()[n]
	}
	return tQuantile(p, df)
}

// tTable holds quantiles for up to mostTabled degrees of freedom.
const mostTabled = 32

// tTable holds the 97.5 % quantile by degrees of freedom. To compute one takes tens of incomplete
// beta functions, and an analysis needs hundreds of thousands.
var tTable = sync.OnceValue(func() (table [mostTabled + 1]float64) {
	for n := 1; n < len(table); n++ {
		table[n] = tQuantile(1-tail, float64(n))
	}
	return table
})

func tQuantile(p, df float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(p)
}

// Mean returns the mean of independent values with Student's interval. Without values it returns
// the zero Estimate.
func Mean(values []float64) Estimate {
	n := float64(len(values))
	if n == 0 {
		return Estimate{}
	}
	mean, variance := stat.MeanVariance(values, nil)
	if n == 1 {
		return Estimate{mean, mean, mean}
	}
	half := TQuantile(1-tail, n-1) * math.Sqrt(variance/n)
	return Estimate{mean, mean - half, mean + half}
}

// Quantile returns the q-quantile (0 ≤ q ≤ 1) of values in ascending order. It interpolates
// linearly between the two nearest values (Hyndman and Fan's type 7). Without values it returns
// NaN.
func Quantile(ascending []float64, q float64) float64 {
	if len(ascending) == 0 {
		return math.NaN()
	}
	at := q * float64(len(ascending)-1)
	below := int(at)
	if below == len(ascending)-1 {
		return ascending[below]
	}
	return ascending[below] + (at-float64(below))*(ascending[below+1]-ascending[below])
}

// Median returns the median of values in any order. Without values it returns NaN.
func Median(values []float64) float64 {
	return Quantile(slices.Sorted(slices.Values(values)), 0.5)
}
