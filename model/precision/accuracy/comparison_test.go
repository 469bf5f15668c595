package accuracy

import (
	"math"
	"testing"
)

// Nothing can be compared with an original that is all NaN: its cosine is unknown, not 1.
func TestCosineOfNoNumbers(t *testing.T) {
	t.Parallel()
	var c comparison
	nan := math.NaN()
	c.addFloats([]float64{nan, nan}, []float64{1, 2}, 1, true)
	if f := c.figures(false); !math.IsNaN(f.CosineMean) || !math.IsNaN(f.CosineMin) {
		t.Errorf("cosine %v, least %v; want NaN", f.CosineMean, f.CosineMin)
	}
}

// The work of finding neighbours is limited. Wider rows reduce the number of compared rows, until
// they are too few for a figure.
func TestNeighboursAreBounded(t *testing.T) {
	t.Parallel()
	for columns, want := range map[int]int{2: 2000, 384: 1672, 1000: 1036, 30522: 187, maxNeighbourWork / 100: 10, 2 * maxNeighbourWork: 0} {
		rows := neighbourRows(columns)
		if rows != want || rows*rows*columns > maxNeighbourWork {
			t.Errorf("%d rows of %d columns are compared, want %d", rows, columns, want)
		}
	}
	var c comparison
	batch := make([]float64, 100*1000)
	for range 11 {
		c.addFloats(batch, batch, 100, true)
	}
	if len(c.vectors[0]) != 1036 || len(c.vectors[1]) != 1036 {
		t.Errorf("%d and %d rows are kept to be compared, want 1036 of 1100", len(c.vectors[0]), len(c.vectors[1]))
	}
}
