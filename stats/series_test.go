package stats

import (
	"math/rand/v2"
	"testing"
)

func TestAutocorrelation(t *testing.T) {
	t.Parallel()
	// 1, 2, 3, 4: deviations −1.5, −0.5, 0.5, 1.5; products 0.75 − 0.25 + 0.75 = 1.25 over squares 5.
	if got := Autocorrelation([]float64{1, 2, 3, 4}); !near(got, 0.25, 1e-12) {
		t.Errorf("of 1, 2, 3, 4 is %g, want 0.25", got)
	}
	// 1, −1, 1, −1: products −3 over squares 4.
	if got := Autocorrelation([]float64{1, -1, 1, -1}); !near(got, -0.75, 1e-12) {
		t.Errorf("of an alternating series is %g, want -0.75", got)
	}
	if Autocorrelation([]float64{3, 3, 3, 3}) != 0 || Autocorrelation([]float64{1, 2}) != 0 {
		t.Error("a constant or too short series has an autocorrelation")
	}
}

func TestInflation(t *testing.T) {
	t.Parallel()
	// ρ = 0.25: 1.25/0.75.
	if got := Inflation([]float64{1, 2, 3, 4}); !near(got, 5.0/3, 1e-12) {
		t.Errorf("at ρ = 0.25 is %g, want 1.667", got)
	}
	if got := Inflation([]float64{1, -1, 1, -1}); got != 1 {
		t.Errorf("a negative correlation narrows the interval by %g", got)
	}
	trend := make([]float64, 1000)
	for i := range trend {
		trend[i] = float64(i)
	}
	if got := Inflation(trend); !near(got, 19, 1e-9) {
		t.Errorf("of a pure trend is %g, want the bound 19", got)
	}
}

// autoregressive makes a stationary AR(1) series with mean 0.
func autoregressive(random *rand.Rand, n int, rho float64) []float64 {
	series := make([]float64, n)
	state := random.NormFloat64() / 0.6 // standard deviation 1/√(1−ρ²) at ρ = 0.8
	for i := range series {
		state = rho*state + random.NormFloat64()
		series[i] = state
	}
	return series
}

// Without the correction the interval of an AR(1) mean with ρ = 0.8 covers about half of the time. With it seven times of
// eight, not 95 %, because ρ is underestimated in a series of 60.
func TestBatchMeansCoverAnAutocorrelatedSeries(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	const rounds = 2000
	corrected, naive := 0, 0
	for range rounds {
		series := autoregressive(random, 60, 0.8)
		if e := BatchMeans(series); e.Lo <= 0 && 0 <= e.Hi {
			corrected++
		}
		if e := Mean(series); e.Lo <= 0 && 0 <= e.Hi {
			naive++
		}
	}
	if corrected < rounds*85/100 || naive > rounds*60/100 {
		t.Errorf("covered %d of %d with the correction, %d without", corrected, rounds, naive)
	}
}

func TestSlope(t *testing.T) {
	t.Parallel()
	line := make([]float64, 20)
	for i := range line {
		line[i] = 5 + 0.5*float64(i)
	}
	if e := Slope(line); e != (Estimate{0.5, 0.5, 0.5}) {
		t.Errorf("of a line is %+v, want 0.5 without doubt", e)
	}
	line[10] = 1e6
	if e := Slope(line); !near(e.Value, 0.5, 1e-9) {
		t.Errorf("one outlier moves the slope to %+v", e)
	}
	if Slope([]float64{1}) != (Estimate{}) {
		t.Error("one value has a slope")
	}
}

// The interval must cover a true slope of zero for pure noise about 95 % of the time.
func TestSlopeIntervalCovers(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9, 10))
	const rounds = 1000
	covered := 0
	for range rounds {
		noise := make([]float64, 20)
		for i := range noise {
			noise[i] = random.NormFloat64()
		}
		if e := Slope(noise); e.Lo <= 0 && 0 <= e.Hi {
			covered++
		}
	}
	if covered < rounds*93/100 || covered > rounds*99/100 {
		t.Errorf("covered %d of %d", covered, rounds)
	}
}

func TestWarmUpEnd(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(11, 12))
	series := make([]float64, 200)
	for i := range series {
		series[i] = 100 + random.NormFloat64()
		if i < 30 {
			series[i] += 10 * float64(30-i)
		}
	}
	// The transient of 30 values must go, and little more.
	if end, found := WarmUpEnd(series); !found || end < 25 || end > 50 {
		t.Errorf("transient of 30 is taken for %d, found %t", end, found)
	}
	for i := range series {
		series[i] = float64(i)
	}
	if _, found := WarmUpEnd(series); found {
		t.Error("a transient is found in a pure trend")
	}
	if _, found := WarmUpEnd([]float64{1, 2, 3}); found {
		t.Error("a transient is found in three values")
	}
}
