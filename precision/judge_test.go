package precision

import (
	"math"
	"testing"

	"tuner/onnx"
	"tuner/onnx/inputs"
	"tuner/precision/accuracy"
)

// TestFarthest: a run that differs is found, in whichever of the runs an element is not finite.
func TestFarthest(t *testing.T) {
	t.Parallel()
	run := func(a, b float32, class byte) accuracy.Outputs {
		return accuracy.Outputs{{"y": floats([]float32{a, b}, 1, 2), "class": inputs.Tensor{Type: onnx.Int8, Shape: []int64{1}, Data: []byte{class}}}}
	}
	nan := float32(math.NaN())
	base := run(1, 2, 0)
	for name, c := range map[string]struct {
		runs []accuracy.Outputs
		want float64
	}{
		"the same":            {[]accuracy.Outputs{base, base, base}, 0},
		"NaN, as ever":        {[]accuracy.Outputs{run(nan, 2, 0), run(nan, 2, 0)}, 0},
		"a little, the last":  {[]accuracy.Outputs{base, base, run(1, 2.5, 0)}, .5},
		"a NaN that comes":    {[]accuracy.Outputs{base, run(1.5, nan, 0)}, math.Inf(1)},
		"a NaN that goes":     {[]accuracy.Outputs{run(1, nan, 0), run(1.5, 2, 0)}, math.Inf(1)},
		"an infinity":         {[]accuracy.Outputs{run(1, float32(math.Inf(-1)), 0), base}, math.Inf(1)},
		"whole numbers alone": {[]accuracy.Outputs{base, run(1, 2, 1)}, math.Inf(1)},
	} {
		r, err := farthest(c.runs[0], c.runs[1:])
		if err != nil || r.Difference() != c.want {
			t.Errorf("%s: %v, %v; want %v", name, r.Difference(), err, c.want)
		}
	}
}
