package quantization

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuantizeSymmetric(t *testing.T) {
	t.Parallel()
	column := func(n int) func(int) int { return func(i int) int { return i % n } }
	check := func(what string, values []float32, limit int8, channels int, want []int8, wantScales []float32) {
		t.Helper()
		raw, scales := quantizeSymmetric(values, limit, channels, column(channels))
		got := make([]int8, len(raw))
		for i, b := range raw {
			got[i] = int8(b)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff(wantScales, scales); diff != "" {
			t.Errorf("%s: scales (-want +got):\n%s", what, diff)
		}
	}
	// The largest magnitude of 127 gives the scale 1. The values are only rounded, ties to even.
	check("halves", []float32{127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, -126.5}, 127, 1, []int8{127, 0, 2, 2, 0, -2, -2, -126}, []float32{1})
	// The columns are (254, -2) and (127, 127), with scales 2 and 1.
	check("columns", []float32{254, 127, -2, 127}, 127, 2, []int8{127, 127, -1, 127}, []float32{2, 1})
	// Seven bits have 64 steps to each side; 32/64 = 0.5.
	check("seven bits", []float32{-32, 16, 0.25}, 64, 1, []int8{-64, 32, 0}, []float32{0.5})
	check("zeros", []float32{0, 0}, 127, 1, []int8{0, 0}, []float32{1})
	// 2^-127 and 2^-130 are denormal, and their scale would be too.
	check("denormal numbers", []float32{0x1p-127, -0x1p-130}, 127, 1, []int8{0, 0}, []float32{1})
	// 2^127 twice would be infinite in 32 bits. The scale is 2^127/127, rounded, and 2^125 is 31.75
	// times that.
	check("largest numbers", []float32{-0x1p127, 0x1p125}, 127, 1, []int8{-127, 32}, []float32{float32(0x1p127 / 127.)})
}

func TestCheckFinite(t *testing.T) {
	t.Parallel()
	if denormal, err := checkFinite("w", []float32{0, 1, 0x1p-126, 0x1p-127, -0x1p-149}); err != nil || denormal != 2 {
		t.Errorf("%d denormal numbers and error %v, want 2 and none", denormal, err)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if _, err := checkFinite("w", []float32{1, float32(bad)}); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}
