package stats_test

import (
	"math"
	"testing"

	"tuner/measure/stats"
)

// Two groups on lines with a slope of 3, one 100 above the other: the slope is 3, whatever the
// distance of the groups. A group of one value adds nothing.
func TestWithinGroups(t *testing.T) {
	t.Parallel()
	groups := []string{"a", "b", "a", "b", "a", "alone"}
	x := []float64{1, 10, 2, 12, 3, 50}
	y := []float64{3, 130, 6, 136, 9, -7}
	products, squares := stats.WithinGroups(groups, x, y)
	if math.Abs(squares-4) > 1e-12 || math.Abs(products-12) > 1e-12 {
		t.Errorf("sums %g and %g, want 12 and 4", products, squares)
	}
}
