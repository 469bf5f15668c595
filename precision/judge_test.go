package precision

import (
	"testing"

	"tuner/onnx"
	"tuner/onnx/inputs"
)

func TestIsEmbedding(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		t    inputs.Tensor
		want bool
	}{
		"unit rows":     {floats([]float32{.6, -.8, 1, 0}, 2, 2), true}, // .36 + .64 = 1
		"scores":        {floats([]float32{.6, -.8, 2, 0}, 2, 2), false},
		"one-hot":       {floats([]float32{0, 1, 1, 0}, 2, 2), false}, // of length 1, but nothing below 0
		"probabilities": {floats([]float32{.5, .5, .25, .75}, 2, 2), false},
		"of rank 3":     {floats([]float32{.6, -.8}, 1, 2, 1), false},
		"no rows":       {floats(nil, 0, 2), false},
		"whole numbers": {inputs.Tensor{Type: onnx.Int8, Shape: []int64{1, 1}, Data: []byte{255}}, false},
	} {
		if got := isEmbedding(c.t); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
