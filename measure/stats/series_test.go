package stats

import (
	"math/rand/v2"
	"testing"
)

func TestAutocorrelation(t *testing.T) {
	t.Parallel()
	// 1, 2, 3, 4: deviations −1.5, −0.5, 0.5, 1.5; products 0.75 − 0.25 + 0.75 = 1.25 over squares
	// 5.
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

// For pure noise the interval must cover the true slope of zero in about 95 % of the cases.
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
	// The transient of 30 values must go, and few values more.
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
