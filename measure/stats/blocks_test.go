package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestBlocks(t *testing.T) {
	t.Parallel()
	// Logs of two treatments in three rounds: 0 0 0 and 0.1 0.2 0.3. The difference of the means is
	// 0.2. The residuals are ±0.05, 0, ∓0.05, so their sum of squares is 4·0.0025 = 0.01. With
	// (2−1)·(3−1) = 2 degrees of freedom the variance is 0.005. Half the interval is t(0.975,
	// 2)·√(2·0.005/3) = 4.303·0.05774 = 0.2484. Student's interval for the three differences is the
	// same.
	b := NewBlocks([][]float64{{1, 1, 1}, {math.Exp(0.1), math.Exp(0.2), math.Exp(0.3)}})
	e := b.Ratio(1, 0)
	if !near(math.Log(e.Value), 0.2, 1e-9) || !near(math.Log(e.Hi), 0.4484, 1e-4) || !near(math.Log(e.Lo), -0.0484, 1e-4) {
		t.Errorf("the ratio is %+v", e)
	}
	if v, freedom := b.Noise(); !near(v, 0.005, 1e-12) || freedom != 2 {
		t.Errorf("the noise is %g with %d degrees of freedom, want 0.005 with 2", v, freedom)
	}
	if e := b.Ratio(1, 1); e != (Estimate{1, 1, 1}) {
		t.Errorf("of a treatment to itself is %+v", e)
	}
	if e := NewBlocks([][]float64{{2, 9}, {3}}).Ratio(1, 0); !near(e.Value, 1.5, 1e-12) || e.Lo != e.Value || e.Hi != e.Value {
		t.Errorf("of one round is %+v", e)
	}
	if e := NewBlocks([][]float64{{2}, nil}).Ratio(1, 0); e != (Estimate{}) {
		t.Errorf("of no rounds is %+v", e)
	}
}

// Means are geometric. Their ratio equals Ratio, also where a value lies far off.
func TestBlocksMeans(t *testing.T) {
	t.Parallel()
	// Logs 0.1, 0.2, 0.3: mean 0.2, standard deviation 0.1. Half the interval is t(0.975, 2)·0.1/√3
	// = 4.303·0.05774 = 0.2484.
	e := NewBlocks([][]float64{{1, 1, 1}, {math.Exp(0.1), math.Exp(0.2), math.Exp(0.3)}}).Mean(1)
	if !near(math.Log(e.Value), 0.2, 1e-9) || !near(math.Log(e.Lo), -0.0484, 1e-4) || !near(math.Log(e.Hi), 0.4484, 1e-4) {
		t.Errorf("the mean is %+v", e)
	}
	b := NewBlocks([][]float64{{10, 10.1, 9.9, 10, 30}, {9.6, 9.7, 9.5, 9.6, 9.6}, {10.4, 10.5, 10.3, 10.4, 10.4}})
	if got, want := b.Mean(0).Value/b.Mean(1).Value, b.Ratio(0, 1).Value; !near(got, want, 1e-9) {
		t.Errorf("the means' ratio is %g, want %g", got, want)
	}
	if got := b.Mean(0).Value; got > 11 { // the plain geometric mean is 12.5
		t.Errorf("a value far off moves the mean to %g", got)
	}
	if e := NewBlocks([][]float64{{2}, {3}}).Mean(1); !near(e.Value, 3, 1e-9) || e.Lo != e.Value || e.Hi != e.Value {
		t.Errorf("of one round is %+v", e)
	}
	if e := NewBlocks([][]float64{{2}, nil}).Mean(0); e != (Estimate{}) {
		t.Errorf("of no rounds is %+v", e)
	}
}

// Differences between rounds do not count, however large. Only differences within a round do.
func TestBlocksTakeRoundsOut(t *testing.T) {
	t.Parallel()
	e := NewBlocks([][]float64{{1, 20, 300}, {2, 40, 600}, {3, 60, 900}}).Ratio(2, 1)
	if !near(e.Value, 1.5, 1e-12) || !near(e.Lo, 1.5, 1e-9) || !near(e.Hi, 1.5, 1e-9) {
		t.Errorf("is %+v, want 1.5 exactly", e)
	}
}

// The interval covers the truth in 95 % of the cases. With few rounds it is narrower than the
// interval of pairs. Both hold for normal noise, and with one value in ten disturbed.
func TestBlocksCover(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		rounds        int
		disturbed     float64
		lowest, worth float64
	}{
		{"normal, 5 rounds", 5, 0, 0.93, 0.65},
		{"normal, 12 rounds", 12, 0, 0.93, 0.9},
		{"disturbed, 5 rounds", 5, 0.1, 0.93, 0.85},
		{"disturbed, 12 rounds", 12, 0.1, 0.93, 1.15},
	} {
		random := rand.New(rand.NewPCG(1, uint64(c.rounds)))
		const runs = 2000
		covered, width, pairWidth := 0, 0.0, 0.0
		for range runs {
			values := make([][]float64, 3)
			for range c.rounds {
				drift := random.NormFloat64()
				for i := range values {
					noise := 0.03 * random.NormFloat64()
					if random.Float64() < c.disturbed {
						noise -= 0.3 * random.Float64()
					}
					values[i] = append(values[i], math.Exp(float64(i)*0.1+drift+noise))
				}
			}
			e, pair := NewBlocks(values).Ratio(2, 0), PairedRatio(values[2], values[0])
			if e.Lo <= math.Exp(0.2) && math.Exp(0.2) <= e.Hi {
				covered++
			}
			width += math.Log(e.Hi / e.Lo)
			pairWidth += math.Log(pair.Hi / pair.Lo)
		}
		share := float64(covered) / runs
		t.Logf("%s: %.3f covered, %.3f as wide as of pairs (%.3f)", c.name, share, width/pairWidth, width/runs)
		if share < c.lowest || share > 0.98 || width > c.worth*pairWidth {
			t.Errorf("%s: %.3f covered, %.3f as wide as of pairs", c.name, share, width/pairWidth)
		}
	}
}

// The interval of two treatments depends on their own differences only, not on a third treatment.
func TestPairedOfTwo(t *testing.T) {
	t.Parallel()
	// Differences of logs 0.1, 0.2, 0.3: mean 0.2, standard deviation 0.1. Half the interval is
	// t(0.975, 2)·0.1/√3 = 4.303·0.05774 = 0.2484.
	b := NewBlocks([][]float64{{1, 1, 1}, {math.Exp(0.1), math.Exp(0.2), math.Exp(0.3)}, {math.Exp(5), math.Exp(-5), 1}})
	e := b.Paired(1, 0)
	if !near(math.Log(e.Value), 0.2, 1e-9) || !near(math.Log(e.Lo), -0.0484, 1e-4) || !near(math.Log(e.Hi), 0.4484, 1e-4) {
		t.Errorf("the ratio is %+v", e)
	}
	if e := b.Paired(1, 1); e != (Estimate{1, 1, 1}) {
		t.Errorf("of a treatment to itself is %+v", e)
	}
	if e := NewBlocks([][]float64{{2}, {3}}).Paired(1, 0); !near(e.Value, 1.5, 1e-12) || e.Lo != e.Value || e.Hi != e.Value {
		t.Errorf("of one round is %+v", e)
	}
	if e := NewBlocks([][]float64{{2}, nil}).Paired(1, 0); e != (Estimate{}) {
		t.Errorf("of no rounds is %+v", e)
	}
}

// If all values of a treatment are moved, because all other treatments are calm, its interval stays
// wider than zero.
func TestPairedOfACalmCrowd(t *testing.T) {
	t.Parallel()
	values := [][]float64{{1, 3, 1, 3}}
	for range 12 {
		values = append(values, []float64{1, 1, 1, 1})
	}
	b := NewBlocks(values)
	for _, e := range []Estimate{b.Paired(0, 1), b.Mean(0)} {
		if !(e.Lo <= e.Value && e.Value <= e.Hi) || math.IsInf(e.Hi, 0) {
			t.Errorf("is %+v", e)
		}
	}
}

// One treatment is three times as noisy as the others. The interval of Paired covers the truth in
// 95 % of the cases. The interval of Ratio, which assumes equal noise, does not.
func TestPairedCoversUnequalNoise(t *testing.T) {
	t.Parallel()
	const runs, nominal = 8000, 0.95
	sampling := 3 * math.Sqrt(nominal*(1-nominal)/runs)
	noise := []float64{0.09, 0.03, 0.03, 0.03} // the others are compared with the first one
	for _, rounds := range []int{3, 5, 12} {
		random := rand.New(rand.NewPCG(2, uint64(rounds)))
		paired, alike := 0, 0
		covers := func(e Estimate) int {
			if e.Lo <= math.Exp(0.1) && math.Exp(0.1) <= e.Hi {
				return 1
			}
			return 0
		}
		for range runs {
			values := make([][]float64, len(noise))
			for range rounds {
				drift := random.NormFloat64()
				for i := range values {
					values[i] = append(values[i], math.Exp(float64(i)*0.1+drift+noise[i]*random.NormFloat64()))
				}
			}
			b := NewBlocks(values)
			paired, alike = paired+covers(b.Paired(1, 0)), alike+covers(b.Ratio(1, 0))
		}
		share, shareAlike := float64(paired)/runs, float64(alike)/runs
		t.Logf("%d rounds: %.4f covered, %.4f where all noise is taken for alike", rounds, share, shareAlike)
		if share < nominal-sampling {
			t.Errorf("%d rounds: only %.4f covered", rounds, share)
		}
		if shareAlike >= nominal-sampling {
			t.Errorf("%d rounds: %.4f covered where all noise is taken for alike: this is no test of unequal noise", rounds, shareAlike)
		}
	}
}
