package stats

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

// The 97.5 % column of the usual t table (for example NIST/SEMATECH e-Handbook, table 1.3.6.7.2).
func TestTQuantileAgreesWithTheTable(t *testing.T) {
	t.Parallel()
	for df, want := range map[float64]float64{1: 12.706, 2: 4.303, 3: 3.182, 5: 2.571, 9: 2.262, 19: 2.093, 30: 2.042, 100: 1.984} {
		if got := TQuantile(0.975, df); !near(got, want, 0.0006) {
			t.Errorf("t(0.975, %g) is %.4f, want %.3f", df, got, want)
		}
	}
}

// A value from the table equals the computed one to the last bit. Other quantiles and fractional
// degrees of freedom are computed.
func TestTQuantileTable(t *testing.T) {
	t.Parallel()
	for _, df := range []float64{1, 2, 4, 32, 33, 1000, 2.5, 0.5} {
		for _, p := range []float64{0.975, 0.95, 0.025} {
			if got, want := TQuantile(p, df), tQuantile(p, df); got != want {
				t.Errorf("t(%g, %g) is %v, want %v", p, df, got, want)
			}
		}
	}
}

// Half of an interval is half of its width. One that ends at the value, 95 with 90 to 95, has the half below the value, 5.
func TestHalf(t *testing.T) {
	t.Parallel()
	for want, e := range map[float64]Estimate{
		4: {95, 91, 99}, 4.5: {95, 91, 100}, 5: {95, 90, 95}, 6: {95, 89, 97}, 0: {95, 95, 95},
	} {
		if got := e.Half(); got != want {
			t.Errorf("half of %v is %v, want %v", e, got, want)
		}
	}
}

func TestMean(t *testing.T) {
	t.Parallel()
	// 2, 4, 6: the standard deviation is 2, so half the interval is 4.303·2/√3 = 4.968.
	if e := Mean([]float64{2, 4, 6}); !near(e.Value, 4, 1e-12) || !near(e.Hi-e.Value, 4.968, 1e-3) || !near(e.Value-e.Lo, 4.968, 1e-3) {
		t.Errorf("mean of 2, 4, 6 is %+v, want 4 ± 4.968", e)
	}
	if e := Mean([]float64{7}); e != (Estimate{7, 7, 7}) {
		t.Errorf("mean of one value is %+v", e)
	}
	if e := Mean(nil); e != (Estimate{}) {
		t.Errorf("mean of nothing is %+v", e)
	}
}

func TestQuantileInterpolates(t *testing.T) {
	t.Parallel()
	values := []float64{10, 20, 30, 40, 50}
	// Type 7: position q·(n−1) from 0; 0.9·4 = 3.6, between 40 and 50.
	for q, want := range map[float64]float64{0: 10, 0.25: 20, 0.5: 30, 0.9: 46, 1: 50} {
		if got := Quantile(values, q); !near(got, want, 1e-9) {
			t.Errorf("quantile %g is %g, want %g", q, got, want)
		}
	}
	if !math.IsNaN(Quantile(nil, 0.5)) {
		t.Error("the quantile of nothing is a number")
	}
	if got := Median([]float64{9, 1, 5, 7}); got != 6 {
		t.Errorf("median of 1, 5, 7, 9 is %g, want 6", got)
	}
}

// Ranks for the median are those of the sign test's interval in tables (for example Conover,
// Practical Nonparametric Statistics, table A3; α/2 ≤ 2.5 %). Ranks for other quantiles follow from
// the sums in the comments.
func TestOrderRanks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n      int
		q      float64
		lo, hi int
	}{
		{5, 0.5, 0, 6}, // 2^-5 = 3.1 % > 2.5 %: no bound
		{6, 0.5, 1, 6}, // 2^-6 = 1.6 %
		{10, 0.5, 2, 9},
		{20, 0.5, 6, 15},
		{100, 0.5, 40, 61},
		{35, 0.9, 28, 36}, // 0.9^35 = 2.504 % > 2.5 %: no upper bound
		{36, 0.9, 29, 36}, // 0.9^36 = 2.25 %
		{367, 0.99, 360, 368},
		{368, 0.99, 361, 368}, // 0.99^368 = 2.48 %
	} {
		lo, hi := OrderRanks(c.n, c.q)
		if hi != c.hi {
			t.Errorf("n %d, q %g: upper rank %d, want %d", c.n, c.q, hi, c.hi)
		}
		if want := lowerRank(c.n, c.q); lo != want || (c.q == 0.5 && lo != c.lo) {
			t.Errorf("n %d, q %g: lower rank %d, want %d", c.n, c.q, lo, want)
		}
	}
}

// A search with a guess finds the same ranks as one without.
func TestOrderRanksFromAGuess(t *testing.T) {
	t.Parallel()
	for _, q := range []float64{0.001, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999} {
		for n := 1; n < 5000; n += 1 + n/7 {
			below := distuv.Binomial{N: float64(n), P: q}
			lo := sort.Search(n, func(k int) bool { return below.CDF(float64(k)) > tail })
			hi := sort.Search(n+1, func(k int) bool { return k > 0 && 1-below.CDF(float64(k-1)) <= tail })
			if a, b := OrderRanks(n, q); a != lo || b != hi {
				t.Errorf("n %d, q %g: ranks %d and %d, want %d and %d", n, q, a, b, lo, hi)
			}
		}
	}
}

func TestSearchNear(t *testing.T) {
	t.Parallel()
	for n := range 20 {
		for want := range n + 1 {
			for guess := -3; guess < n+3; guess++ {
				asked := 0
				got := searchNear(n, guess, func(k int) bool {
					if k < 0 || k >= n {
						t.Fatalf("of %d, asked for %d", n, k)
					}
					asked++
					return k >= want
				})
				if got != want {
					t.Errorf("of %d from %d: %d, want %d", n, guess, got, want)
				}
				if guess == want && asked > 2 {
					t.Errorf("of %d from %d: asked %d times although the guess is right", n, guess, asked)
				}
			}
		}
	}
}

// lowerRank sums binomial probabilities and returns the largest l with P(count < l) ≤ 2.5 %.
func lowerRank(n int, q float64) int {
	sum := 0.0
	for k := range n {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(n - k + 1))
		sum += math.Exp(a - b - c + float64(k)*math.Log(q) + float64(n-k)*math.Log(1-q))
		if sum > tail {
			return k
		}
	}
	return n
}

func TestOrderSamples(t *testing.T) {
	t.Parallel()
	for q, want := range map[float64]int{0.5: 6, 0.9: 36, 0.95: 72, 0.99: 368} {
		if got := OrderSamples(q); got != want {
			t.Errorf("%d values bound the %g quantile, want %d", got, q, want)
		}
		if _, hi := OrderRanks(want, q); hi > want {
			t.Errorf("%d values do not bound the %g quantile from above", want, q)
		}
	}
}

// The share of samples whose interval covers the true quantile is at least 95 % by construction. It
// is not far more when n is large enough for fine steps.
func TestOrderRanksCover(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	const n, q, rounds = 500, 0.9, 2000
	lo, hi := OrderRanks(n, q)
	covered := 0
	for range rounds {
		below := 0 // number of values below the true quantile: each is with probability q
		for range n {
			if random.Float64() < q {
				below++
			}
		}
		if lo <= below && below < hi {
			covered++
		}
	}
	if share := float64(covered) / rounds; share < 0.94 || share > 0.975 {
		t.Errorf("the interval covers %.1f %% of the time, want a little over 95 %%", 100*share)
	}
}
