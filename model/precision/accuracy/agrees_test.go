package accuracy_test

import (
	"math"
	"testing"

	"tuner/model/precision/accuracy"
)

// Small outputs (probabilities of a thousand classes) must agree relative to their size.
func TestAgrees(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		figures accuracy.Figures
		want    bool
	}{
		"rounding":                     {accuracy.Figures{MaxAbs: 1e-4, MaxRel: 1e-4}, true},
		"small numbers, all wrong":     {accuracy.Figures{MaxAbs: 5e-4, MaxRel: 0.5}, false},
		"rows of zeros":                {accuracy.Figures{MaxAbs: 1e-8, MaxRel: math.Inf(1)}, true},
		"not a number":                 {accuracy.Figures{MaxAbs: 1e-8, MaxRel: 1e-8, NonFinite: 1}, false},
		"nothing but NaN":              {accuracy.Figures{MaxAbs: math.NaN(), Top1: math.NaN(), NonFiniteOriginal: 3}, false},
		"whole numbers that differ":    {accuracy.Figures{MaxAbs: math.NaN(), Top1: 0.9}, false},
		"whole numbers that are equal": {accuracy.Figures{MaxAbs: math.NaN(), Top1: 1}, true},
	} {
		if got := tc.figures.Agrees(); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
