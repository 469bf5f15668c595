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
