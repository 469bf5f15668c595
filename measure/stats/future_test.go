package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestNext(t *testing.T) {
	t.Parallel()
	// Mean 2, s = 1, t(0.975; 2) = 4.302653: half is 4.302653 · √(4/3) = 4.968275.
	e, ok := Next([]float64{1, 2, 3})
	if !ok || math.Abs(e.Value-2) > 1e-12 || math.Abs(e.Hi-6.968275) > 1e-6 || math.Abs(e.Lo+2.968275) > 1e-6 {
		t.Errorf("%+v, %t", e, ok)
	}
	// Equal values leave no doubt; one value says nothing.
	if e, ok := Next([]float64{5, 5}); !ok || e != (Estimate{5, 5, 5}) {
		t.Errorf("%+v, %t", e, ok)
	}
	if _, ok := Next([]float64{5}); ok {
		t.Error("one value has a next one")
	}
}

func TestDifference(t *testing.T) {
	t.Parallel()
	// Welch's example form: means 3 and 7, variances 1 and 4 of 3 and 3 values: the standard error is
	// √(1/3 + 4/3) = 1.290994, the degrees of freedom (5/3)² / ((1/3)²/2 + (4/3)²/2) = 2.941176.
	a, b := []float64{2, 3, 4}, []float64{5, 7, 9}
	e, ok := Difference(a, b)
	half := TQuantile(0.975, 2.941176470588235) * 1.2909944487358056
	if !ok || math.Abs(e.Value+4) > 1e-12 || math.Abs(e.Hi-e.Value-half) > 1e-9 || math.Abs(e.Value-e.Lo-half) > 1e-9 {
		t.Errorf("%+v, want −4 ± %g", e, half)
	}
	// With equal sizes and equal variances it is Student's interval with 2(n − 1) degrees of freedom.
	e, _ = Difference([]float64{0, 1, 2}, []float64{1, 2, 3})
	if want := TQuantile(0.975, 4) * math.Sqrt(2.0/3); math.Abs(e.Hi-e.Value-want) > 1e-9 {
		t.Errorf("%+v, want a half of %g", e, want)
	}
	if _, ok := Difference([]float64{1}, b); ok {
		t.Error("one value has a variance")
	}
}

// The interval of the next value has it in 95 % of the cases, and the difference's has the true one.
func TestCoverageOfFuture(t *testing.T) {
	t.Parallel()
	const tries = 4000
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n int, mean, sd float64) []float64 {
		list := make([]float64, n)
		for i := range list {
			list[i] = mean + sd*r.NormFloat64()
		}
		return list
	}
	for _, n := range []int{2, 3, 5, 9} {
		next, difference := 0, 0
		for range tries {
			values := draw(n+1, 1, 0.1)
			if e, _ := Next(values[:n]); e.Lo <= values[n] && values[n] <= e.Hi {
				next++
			}
			if e, _ := Difference(draw(n, 1, 0.1), draw(n, 3, 0.03)); e.Lo <= -2 && -2 <= e.Hi {
				difference++
			}
		}
		// The standard deviation of a share of 95 % of 4,000 is 0.35 %, and four of them are allowed.
		// Welch's interval is an approximation: with two values each it is off by up to 3 %.
		if share := float64(next) / tries; share < 0.936 || share > 0.964 {
			t.Errorf("n = %d: the next value lies within in %.4f", n, share)
		}
		if share := float64(difference) / tries; share < 0.92 || share > 0.985 {
			t.Errorf("n = %d: the difference lies within in %.4f", n, share)
		}
	}
}
