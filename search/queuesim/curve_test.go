package queuesim

import (
	"math"
	"testing"
)

func TestCurveTime(t *testing.T) {
	t.Parallel()
	curve := ServiceCurve{Sizes: []int{2, 4, 8}, Alone: []float64{3, 5, 11}, Crowded: []float64{6, 9, 20}}
	falling := ServiceCurve{Sizes: []int{2, 4}, Alone: []float64{4, 3}}
	steep := ServiceCurve{Sizes: []int{4, 5}, Alone: []float64{4, 9}}
	single := ServiceCurve{Sizes: []int{4}, Alone: []float64{2}}
	for _, tc := range []struct {
		name                   string
		curve                  ServiceCurve
		batch, busy, instances int
		want                   float64
	}{
		{"measured", curve, 4, 1, 3, 5},
		{"measured, crowded", curve, 4, 3, 3, 9},
		{"half of the others busy", curve, 4, 2, 3, 7},
		{"between sizes", curve, 5, 1, 3, 6.5},                 // 5 + 1·6/4
		{"between sizes, half crowded", curve, 5, 2, 3, 9.125}, // (6.5 + 9 + 1·11/4) / 2
		{"above", curve, 10, 1, 3, 14},                         // 11 + 2·6/4
		{"below", curve, 1, 1, 3, 2},                           // 3 − 1
		{"one instance is never crowded", curve, 4, 1, 1, 5},
		{"no crowded times", falling, 4, 2, 2, 3},
		{"falling between sizes, as measured", falling, 3, 1, 1, 3.5},
		{"not falling above", falling, 8, 1, 1, 3},
		{"nor below", falling, 1, 1, 1, 4},
		{"below, at least the share", steep, 2, 1, 1, 2}, // the line gives −6
		{"single size", single, 4, 1, 1, 2},
		{"single size, above", single, 6, 1, 1, 3},
		{"single size, below", single, 1, 1, 1, 2},
	} {
		if got := tc.curve.Time(tc.batch, tc.busy, tc.instances); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}
