package stats

import "testing"

// equal returns n slices of one size.
func equal(n int, size float64) []float64 {
	sizes := make([]float64, n)
	for i := range sizes {
		sizes[i] = size
	}
	return sizes
}

func TestEffectiveSizeOfClusters(t *testing.T) {
	t.Parallel()
	// 8 slices of 10, all or nothing: 10 0 0 10 10 0 0 10. n = 80, p = 0.5, residuals ±5 in the
	// pattern + − − + + − − +. Their coefficients are √(2/8)·5·Σ ±cos(πj(t+½)/8). The pattern is
	// symmetric about its middle, so those of odd j vanish. That of j = 2 vanishes by the symmetry
	// of the halves. j = 4: cos(π(t+½)/2) = ±√½ in the same pattern, sum 8·√½ = 5.657, coefficient
	// ½·5·5.657 = 14.14, square 200. ν = 4: the long-run variance is 200/4 = 50. For independent
	// values it is 80/4/8 = 2.5, so deff = 20. (1.960/2.776)² = 0.4983, and 80/20·0.4983 = 1.993.
	hits := []float64{10, 0, 0, 10, 10, 0, 0, 10}
	if got := EffectiveSize(hits, equal(8, 10)); !near(got, 1.993, 0.002) {
		t.Errorf("is %g, want 1.993", got)
	}
}

func TestEffectiveSizeIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		hits, sizes []float64
		want        float64
	}{
		{"the same share everywhere", equal(20, 99), equal(20, 100), 6000},
		{"too few slices", []float64{10, 0, 10, 0}, equal(4, 10), 40},
		{"no hits", equal(20, 0), equal(20, 100), 2000},
		{"hits only", equal(20, 100), equal(20, 100), 2000},
		{"nothing", nil, nil, 1},
	} {
		if got := EffectiveSize(c.hits, c.sizes); !near(got, c.want, 1e-9) {
			t.Errorf("%s: is %g, want %g", c.name, got, c.want)
		}
	}
}

func TestQuantileRanks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n         int
		effective float64
		q         float64
		lo, hi    int
	}{
		{100, 100, 0.5, 40, 61},  // same as OrderRanks
		{100, 10.9, 0.5, 20, 90}, // ranks of 10: 2 and 9
		{95, 10, 0.5, 19, 86},    // 2·9.5 = 19, 9·9.5 = 85.5
		{88, 10, 0.5, 18, 80},    // 17.6 and 79.2: the upper one is rounded up
		{10, 20, 0.5, 3, 8},      // ranks of 20: 6 and 15, halved
		{1000, 35, 0.9, 800, 1001},
		{7, 5, 0.5, 0, 8}, // 5 cannot bound a median
		{7, 0.2, 0.5, 0, 8},
	} {
		if lo, hi := QuantileRanks(c.n, c.effective, c.q); lo != c.lo || hi != c.hi {
			t.Errorf("%d worth %g, q %g: ranks %d and %d, want %d and %d", c.n, c.effective, c.q, lo, hi, c.lo, c.hi)
		}
	}
}
