package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"
)

func mean(values []float64) float64 { return stat.Mean(values, nil) }

// The variance of a resampled mean is known: Politis and Romano (1994), lemma 1. Take n values with
// autocovariances C, and blocks that end with probability p. The variance is (C(0) + 2·Σ
// b(i)·C(i))/n, where b(i) = (1−i/n)·(1−p)^i + i/n·(1−p)^(n−i).
func TestBootstrapOfTheMean(t *testing.T) {
	t.Parallel()
	const n = 200
	series := autoregressive(rand.New(rand.NewPCG(17, 18)), n, 0.7)
	center := mean(series)
	for _, block := range []float64{0, 1, 20} {
		stays := 1 - 1/max(1, block)
		variance := 0.0
		for i := range n {
			covariance := 0.0
			for k := range n - i {
				covariance += (series[k] - center) * (series[k+i] - center) / n
			}
			if i == 0 {
				variance = covariance
				continue
			}
			late := float64(i) / n
			variance += 2 * covariance * ((1-late)*math.Pow(stays, float64(i)) + late*math.Pow(stays, float64(n-i)))
		}
		want := 2 * 1.96 * math.Sqrt(variance/n)
		e := Bootstrap(series, block, 10000, 1, mean)
		// The mean of 200 values is nearly normal. A 2.5 % quantile of 10,000 rounds has an error
		// of 2 %.
		if e.Value != center || !near(e.Hi-e.Lo, want, 0.05*want) || e.Lo >= center || e.Hi <= center {
			t.Errorf("blocks of %g: %+v, %.4f wide, want %.4f around %.4f", block, e, e.Hi-e.Lo, want, center)
		}
	}
}

func TestBootstrapIsDeterministic(t *testing.T) {
	t.Parallel()
	series := autoregressive(rand.New(rand.NewPCG(19, 20)), 50, 0.5)
	first, again, other := Bootstrap(series, 5, 100, 1, Median), Bootstrap(series, 5, 100, 1, Median), Bootstrap(series, 5, 100, 2, Median)
	if first != again || first == other || first.Value != Median(series) {
		t.Errorf("seed 1 gives %+v and %+v, seed 2 %+v", first, again, other)
	}
	if e := Bootstrap(nil, 5, 100, 1, mean); e != (Estimate{}) {
		t.Errorf("of nothing is %+v", e)
	}
	if e := Bootstrap([]float64{1, 3}, 5, 0, 1, mean); e != (Estimate{2, 2, 2}) {
		t.Errorf("without rounds is %+v", e)
	}
}
