package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// autoregressive makes n values of a stationary first-order autoregressive series with mean 0 and
// variance 1.
func autoregressive(random *rand.Rand, n int, rho float64) []float64 {
	series := make([]float64, n)
	innovation := math.Sqrt(1 - rho*rho)
	state := random.NormFloat64()
	for i := range series {
		series[i] = state
		state = rho*state + innovation*random.NormFloat64()
	}
	return series
}

func TestLongRunVarianceIsTheMeanSquareOfCosines(t *testing.T) {
	t.Parallel()
	// 20 values of a slow cosine are so autocorrelated that ν has its minimum, 4. For the third
	// cosine the coefficient is √(2/20)·20/2 = √10 for that cosine itself and 0 for the others. So
	// the mean square of the first four is 10/4. The coefficient of the fifth cosine is not among
	// them.
	for wave, want := range map[int]float64{3: 2.5, 5: 0} {
		series := make([]float64, 20)
		for i := range series {
			series[i] = 7 + math.Cos(math.Pi*float64(wave)*(float64(i)+0.5)/20)
		}
		if got, ok := longRunVariance(series); !ok || !near(got.variance, want, 1e-9) || got.df != 4 {
			t.Errorf("of cosine %d is %+v, %t, want %g with 4 degrees of freedom", wave, got, ok, want)
		}
	}
	if _, ok := longRunVariance(make([]float64, 7)); ok {
		t.Error("seven values have a long-run variance")
	}
}

// The long-run variance of white noise is σ². For an autoregressive series with variance σ² it is
// σ²·(1+ρ)/(1−ρ).
func TestLongRunVarianceOfKnownSeries(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(15, 16))
	const rounds = 400
	for _, c := range []struct {
		n             int
		rho, want, df float64
	}{
		{100, 0, 1, 9}, // 0.4·100^(2/3) = 8.6
		{1000, 0.5, 3, 19},
		{1000, 0.8, 9, 9}, // 0.4·(1000/9)^(2/3) = 9.2
	} {
		variance, freedom := 0.0, 0.0
		for range rounds {
			long, _ := longRunVariance(autoregressive(random, c.n, c.rho))
			variance += long.variance / rounds
			freedom += long.df / rounds
		}
		// One estimate has the relative standard deviation √(2/ν). The mean of 400 has at most 2.4
		// %.
		if !near(variance, c.want, 0.08*c.want) || !near(freedom, c.df, 1.5) {
			t.Errorf("of %d values with ρ = %g is %.3f with %.1f degrees of freedom, want %g with about %g", c.n, c.rho, variance, freedom, c.want, c.df)
		}
	}
}

func TestEffectiveCount(t *testing.T) {
	t.Parallel()
	// ρ = 0.25: 4·0.75/1.25.
	if got := EffectiveCount([]float64{1, 2, 3, 4}); !near(got, 2.4, 1e-12) {
		t.Errorf("of 1, 2, 3, 4 is %g, want 2.4", got)
	}
	if got := EffectiveCount([]float64{1, -1, 1, -1}); got != 4 {
		t.Errorf("of an alternating series is %g, want its length", got)
	}
	trend := make([]float64, 1000)
	for i := range trend {
		trend[i] = float64(i)
	}
	if got := EffectiveCount(trend); !near(got, 1000*0.05/1.95, 1e-9) {
		t.Errorf("of a pure trend is %g, want that at ρ = 0.95", got)
	}
}

// seriesMean returns the mean of a series: SeriesRatio with b = 1.
func seriesMean(series []float64) Estimate {
	ones := make([]float64, len(series))
	for i := range ones {
		ones[i] = 1
	}
	return SeriesRatio(series, ones)
}

func TestSeriesMeanOfFewValuesIsStudents(t *testing.T) {
	t.Parallel()
	values := []float64{2, 4, 6, 1, 9}
	got, want := seriesMean(values), Mean(values)
	if !near(got.Value, want.Value, 1e-12) || !near(got.Lo, want.Lo, 1e-9) || !near(got.Hi, want.Hi, 1e-9) {
		t.Errorf("is %+v, want %+v", got, want)
	}
	if e := seriesMean([]float64{3}); e != (Estimate{3, 3, 3}) {
		t.Errorf("of one value is %+v", e)
	}
	if e := seriesMean(nil); e != (Estimate{}) {
		t.Errorf("of nothing is %+v", e)
	}
}

func TestSeriesMeanOfACosine(t *testing.T) {
	t.Parallel()
	// The long-run variance is 2.5 with ν = 4, as in TestLongRunVarianceOfKnownSeries. Half the
	// interval is 2.776·√(2.5/20) = 0.9815.
	series := make([]float64, 20)
	for i := range series {
		series[i] = 7 + math.Cos(math.Pi*3*(float64(i)+0.5)/20)
	}
	if e := seriesMean(series); !near(e.Value, 7, 1e-9) || !near(e.Hi-7, 0.9815, 1e-3) || !near(7-e.Lo, 0.9815, 1e-3) {
		t.Errorf("is %+v, want 7 ± 0.9815", e)
	}
}

func TestSeriesRatio(t *testing.T) {
	t.Parallel()
	// 6/4 = 1.5. Residuals 1−1.5, 2−1.5, 3−3 = −0.5, 0.5, 0: standard deviation 0.5. Half the
	// interval of their mean is 4.303·0.5/√3 = 1.2422. The mean of b is 4/3.
	if e := SeriesRatio([]float64{1, 2, 3}, []float64{1, 1, 2, 99}); !near(e.Value, 1.5, 1e-12) || !near(e.Hi-1.5, 0.9317, 1e-3) ||
		!near(1.5-e.Lo, 0.9317, 1e-3) {
		t.Errorf("is %+v, want 1.5 ± 0.9317", e)
	}
	if e := SeriesRatio([]float64{1}, []float64{0}); e != (Estimate{}) {
		t.Errorf("by nothing is %+v", e)
	}
	// a is proportional to b, so there is no noise, however unequal the slices are.
	e := SeriesRatio([]float64{2, 20, 200, 2, 6, 8, 2, 2, 4}, []float64{1, 10, 100, 1, 3, 4, 1, 1, 2})
	if !near(e.Value, 2, 1e-12) || !near(e.Lo, 2, 1e-9) || !near(e.Hi, 2, 1e-9) {
		t.Errorf("of proportional series is %+v, want 2 exactly", e)
	}
}
