package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// One group, x = 0 and 1 and 2, y = 5, 4, 1. Within it Σdxdy = −4, Σdx² = 2, Σdy² = 26/3. The
// expected noise of 1 counts for three degrees of freedom, and the residual sum of squares S for
// one. So the variance is (3 + S)/4, and the slope is its fixed point.
func TestLearnVariateByHand(t *testing.T) {
	t.Parallel()
	v := LearnVariate([]int{1, 1, 1}, []float64{0, 1, 2}, []float64{5, 4, 1}, -1, 1)
	slope := -1.0
	for range 100 {
		s := (3 + 26.0/3 + 8*slope + 2*slope*slope) / 4
		slope = (-s + 0.25*-4) / (s + 0.25*2)
	}
	if math.Abs(v.Slope-slope) > 1e-3 || v.Mean != 1 || v.Variance <= 0 || v.Variance >= 0.25 {
		t.Errorf("%+v, want a slope of %.4f about 1", v, slope)
	}
	if got := v.Part(3) - 2*v.Slope; math.Abs(got) > 1e-12 || math.Abs(v.Doubt(3)-4*v.Variance) > 1e-12 {
		t.Errorf("part of 3 is %g, its doubt %g", v.Part(3), v.Doubt(3))
	}
	if moved := v.At(0); moved.Part(1) != v.Slope || moved.Slope != v.Slope {
		t.Errorf("at 0: %+v", moved)
	}
}

// LearnVariate finds a line without noise exactly, whatever the levels of the groups are.
func TestExactLine(t *testing.T) {
	t.Parallel()
	groups, x, y := []string{"a", "b", "a", "b", "a"}, []float64{0, 0.1, 0.2, 0.5, 0.4}, make([]float64, 5)
	for i := range x {
		y[i] = map[string]float64{"a": 3, "b": 9}[groups[i]] - 1.9*x[i]
	}
	v := LearnVariate(groups, x, y, -1, 0)
	if math.Abs(v.Slope+1.9) > 1e-6 || v.Variance > 1e-6 {
		t.Errorf("%+v, want a slope of -1.9", v)
	}
}

// Without a disturbance no value changes, not even in the last digit.
func TestNothingIsTakenOutOfNothing(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]Variate{
		"no disturbance": LearnVariate([]int{1, 1, 2, 2}, make([]float64, 4), []float64{1, 2, 3, 5}, -1, 0.1),
		"no value":       LearnVariate([]int{}, nil, nil, -1, 0.1),
		"zero":           {},
	} {
		if v.Part(0) != 0 || v.Doubt(0) != 0 {
			t.Errorf("%s: %g ± %g is taken out", name, v.Part(0), v.Doubt(0))
		}
	}
	if v := LearnVariate([]int{1, 2}, []float64{0, 1}, []float64{5, 1}, -1, 0.1); v.Slope != -1 || v.Variance != 0.25 {
		t.Errorf("groups of one: %+v, want what is usual", v)
	}
	if v := LearnVariate([]int{1, 1}, []float64{0, 1}, []float64{5, 1}, -1, 0); v.Slope != -1 {
		t.Errorf("two values without a known noise: %+v, want what is usual", v)
	}
}

// LearnVariate recovers slopes that are drawn from the prior. Their errors have the stated size:
// the mean square of error over deviation is 1. Beside a neighbour that explains four fifths of the
// variance, little more than the rest remains.
func TestVariateIsCalibrated(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	const runs, cells, each, noise = 2000, 5, 6, 0.05
	squares, before, after := 0.0, 0.0, 0.0
	for range runs {
		slope := -1 + slopeDeviation*random.NormFloat64()
		var groups []int
		var x, y []float64
		for i := range cells * each {
			taken := 0.3 * random.Float64()
			groups, x = append(groups, i%cells), append(x, taken)
			y = append(y, 0.2*float64(i%cells)+slope*taken+noise*random.NormFloat64())
		}
		v := LearnVariate(groups, x, y, -1, 0)
		squares += (v.Slope - slope) * (v.Slope - slope) / v.Variance / runs
		corrected := make([]float64, len(y))
		for i := range y {
			corrected[i] = y[i] - v.Part(x[i])
		}
		before, after = before+within(groups, x, y).yy, after+within(groups, x, corrected).yy
	}
	if squares < 0.85 || squares > 1.2 {
		t.Errorf("errors by their deviations have a mean square of %.2f, want 1", squares)
	}
	// The sum of squares is that of the noise, less one degree of freedom for the slope.
	want := float64(runs*(cells*each-cells)) * noise * noise
	if after > 1.02*want || after > 0.5*before {
		t.Errorf("squares %.1f, then %.1f; of the noise alone %.1f", before, after, want)
	}
}

// The interval of 1 (0.5 to 2) grows by √3 times its own deviation. Then its ends are twice as far
// away on the log scale.
func TestWiden(t *testing.T) {
	t.Parallel()
	add := math.Sqrt(3) * math.Ln2 / 1.959964
	e := Widen(Estimate{1, 0.5, 2}, add*add)
	if math.Abs(e.Lo-0.25) > 1e-6 || math.Abs(e.Hi-4) > 1e-5 || e.Value != 1 {
		t.Errorf("%+v, want 1 (0.25 to 4)", e)
	}
	if same := (Estimate{3, 2, 4}); Widen(same, 0) != same {
		t.Errorf("%+v", Widen(same, 0))
	}
}
