package stats

import (
	"math"
	"testing"
)

// Constants for a two-sided level of 5 %: Jennison and Turnbull, Group Sequential Methods, tables
// 2.1 and 2.3.
func TestGroupSequentialAgreesWithTheTables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		looks          int
		pocock, oBrien float64
	}{
		{1, 1.960, 1.960}, {2, 2.178, 1.977}, {3, 2.289, 2.004}, {4, 2.361, 2.024}, {5, 2.413, 2.040}, {10, 2.555, 2.087},
	} {
		pocock, err := Pocock(c.looks, 0.05)
		if err != nil || len(pocock) != c.looks || !near(pocock[0], c.pocock, 0.0006) || pocock[0] != pocock[c.looks-1] {
			t.Errorf("Pocock's of %d looks are %.3f, %v, want %g", c.looks, pocock, err, c.pocock)
		}
		oBrien, err := OBrienFleming(c.looks, 0.05)
		if err != nil || len(oBrien) != c.looks || !near(oBrien[c.looks-1], c.oBrien, 0.0006) ||
			!near(oBrien[0], c.oBrien*math.Sqrt(float64(c.looks)), 0.002) {
			t.Errorf("O'Brien and Fleming's of %d looks are %.3f, %v, want %g at last", c.looks, oBrien, err, c.oBrien)
		}
	}
}

func TestGroupSequentialRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		looks int
		alpha float64
		want  string
	}{
		{0, 0.05, "cannot plan 0 looks: at least 1 and at most 100"},
		{101, 0.05, "cannot plan 101 looks: at least 1 and at most 100"},
		{5, 0, "cannot plan looks at level 0: it must lie between 0 and 1"},
		{5, 1, "cannot plan looks at level 1: it must lie between 0 and 1"},
		{5, math.NaN(), "cannot plan looks at level NaN: it must lie between 0 and 1"},
	} {
		for name, plan := range map[string]func(int, float64) ([]float64, error){"Pocock": Pocock, "OBrienFleming": OBrienFleming} {
			if _, err := plan(c.looks, c.alpha); err == nil || err.Error() != c.want {
				t.Errorf("%s of %d looks at %g: %v, want %q", name, c.looks, c.alpha, err, c.want)
			}
		}
	}
}
