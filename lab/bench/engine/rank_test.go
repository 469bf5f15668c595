package main

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRanks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ values, want []float64 }{
		{nil, []float64{}},
		{[]float64{30, 10, 20}, []float64{1, 3, 2}},
		{[]float64{5, 9, 5, 1}, []float64{2.5, 1, 2.5, 4}}, // places 2 and 3 are shared
		{[]float64{7, 7, 7}, []float64{2, 2, 2}},
	} {
		if got := ranks(c.values); !cmp.Equal(got, c.want) {
			t.Errorf("ranks of %v are %v, expected %v", c.values, got, c.want)
		}
	}
}

func TestSpearman(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		a, b []float64
		want float64
	}{
		{"the same order", []float64{1, 2, 3, 4}, []float64{10, 200, 201, 1000}, 1},
		{"the opposite order", []float64{1, 2, 3}, []float64{9, 5, 1}, -1},
		// Ranks differ by 1, 1, 0, 0, 0: 1 − 6 · 2 / (5 · 24) = 0.9.
		{"two neighbours swapped", []float64{5, 4, 3, 2, 1}, []float64{4, 5, 3, 2, 1}, 0.9},
		// Wikipedia's table of IQ and hours of television: −29/165.
		{"a published table", []float64{106, 100, 86, 101, 99, 103, 97, 113, 112, 110}, []float64{7, 27, 2, 50, 28, 29, 20, 12, 6, 17}, -29.0 / 165},
	} {
		if got := spearman(c.a, c.b); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, expected %v", c.name, got, c.want)
		}
	}
}

func TestKept(t *testing.T) {
	t.Parallel()
	// The best by the first gives 90 on the second, whose best is 100.
	if got := kept([]float64{3, 8, 5}, []float64{100, 90, 10}); got != 0.9 {
		t.Errorf("kept %v, expected 0.9", got)
	}
	if got := kept([]float64{3, 8}, []float64{1, 2}); got != 1 {
		t.Errorf("kept %v although both agree", got)
	}
}
