package stats

import (
	"math"
	"testing"
)

func TestPairedRatio(t *testing.T) {
	t.Parallel()
	// Log ratios −0.1, 0, 0.1: nothing is trimmed. The standard deviation is 0.1, so half the
	// interval is 4.303·0.1/√3 = 0.2484.
	b := []float64{50, 80, 20}
	a := []float64{50 * math.Exp(-0.1), 80, 20 * math.Exp(0.1)}
	if e := PairedRatio(a, b); !near(e.Value, 1, 1e-9) || !near(math.Log(e.Hi), 0.2484, 1e-4) || !near(math.Log(e.Lo), -0.2484, 1e-4) {
		t.Errorf("of three pairs is %+v", e)
	}
	if e := PairedRatio([]float64{3}, []float64{2}); e != (Estimate{1.5, 1.5, 1.5}) {
		t.Errorf("of one pair is %+v", e)
	}
	if e := PairedRatio(nil, nil); e != (Estimate{}) {
		t.Errorf("of no pairs is %+v", e)
	}
}

func TestTrimmedMean(t *testing.T) {
	t.Parallel()
	// 1..9 and 1000: two are cut at each end. Kept 3..8: mean 5.5. Winsorized 3,3,3,4,5,6,7,8,8,8:
	// mean 5.5, sum of squares 3·6.25·2 + 2.25 + 0.25 + 0.25 + 2.25 = 42.5, variance 42.5/9.
	// t(0.975, 5) = 2.5706, so half the interval is 2.5706·√(42.5/9)/(0.6·√10) = 2.944.
	values := []float64{1000, 2, 3, 4, 5, 6, 7, 8, 9, 1}
	if e := trimmedMean(values); !near(e.Value, 5.5, 1e-12) || !near(e.Hi-5.5, 2.944, 1e-3) || !near(5.5-e.Lo, 2.944, 1e-3) {
		t.Errorf("is %+v, want 5.5 ± 2.944", e)
	}
	if e := trimmedMean(nil); e != (Estimate{}) {
		t.Errorf("of nothing is %+v", e)
	}
}

// A quarter of 1, 2, 3 and 100 is one value at each end. Kept 2, 3; winsorized 2, 2, 3, 3: variance
// 1/3, so the error is √(1/3)/(0.5·2).
func TestTrimmedMeanOfAnotherPart(t *testing.T) {
	t.Parallel()
	values := []float64{100, 1, 3, 2}
	if got := TrimmedMean(values, 0.25); got.Mean != 2.5 || !near(got.Error, math.Sqrt(1.0/3), 1e-12) || got.Freedom != 1 {
		t.Errorf("is %+v", got)
	}
	// 10 % of four values is less than one value. The result is the plain mean, with the standard
	// deviation over √4.
	if got := TrimmedMean([]float64{1, 2, 3, 4}, 0.1); got.Mean != 2.5 || !near(got.Error, math.Sqrt(5.0/3)/2, 1e-12) || got.Freedom != 3 {
		t.Errorf("without trimming is %+v", got)
	}
	if got := TrimmedMean([]float64{7}, 0.1); got != (Trimmed{Mean: 7}) {
		t.Errorf("of one value is %+v", got)
	}
}

// One disturbed pair out of ten must not hide a 5 % difference.
func TestPairedRatioStandsAnOutlier(t *testing.T) {
	t.Parallel()
	var a, b []float64
	for i := range 10 {
		noise := 1 + 0.01*math.Sin(float64(3*i))
		a, b = append(a, 105*noise), append(b, 100)
	}
	a[4] = 50
	if e := PairedRatio(a, b); e.Lo <= 1.03 || e.Hi >= 1.07 {
		t.Errorf("is %+v, want an interval around 1.05", e)
	}
}
