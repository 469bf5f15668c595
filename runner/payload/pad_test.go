package payload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/runner/payload"
)

// The values stand at the beginning of each dimension, as a client with numpy.pad has them.
func TestPad(t *testing.T) {
	t.Parallel()
	whole := func(shape []int64, values ...int64) inputs.Tensor {
		x := inputs.Tensor{Type: onnx.Int64, Shape: shape}
		for _, v := range values {
			x.Data = onnx.AppendInteger(x.Data, onnx.Int64, v)
		}
		return x
	}
	check := func(in inputs.Tensor, shape []int64, value int64, want inputs.Tensor) {
		t.Helper()
		if diff := cmp.Diff(want, payload.Pad(in, shape, value)); diff != "" {
			t.Errorf("%v to %v (-want +got):\n%s", in.Shape, shape, diff)
		}
	}
	check(whole([]int64{2, 2}, 1, 2, 3, 4), []int64{2, 3}, 0, whole([]int64{2, 3}, 1, 2, 0, 3, 4, 0))
	check(whole([]int64{1, 2, 1}, 5, 6), []int64{1, 3, 2}, 9, whole([]int64{1, 3, 2}, 5, 9, 6, 9, 9, 9))
	check(whole([]int64{2, 2}, 1, 2, 3, 4), []int64{2, 2}, 0, whole([]int64{2, 2}, 1, 2, 3, 4))
	half := inputs.Tensor{Type: onnx.Float16, Shape: []int64{1, 1}, Data: onnx.AppendFloat(nil, onnx.Float16, 0.5)}
	check(half, []int64{1, 2}, 1, inputs.Tensor{Type: onnx.Float16, Shape: []int64{1, 2}, Data: onnx.AppendFloat(onnx.AppendFloat(nil, onnx.Float16, 0.5), onnx.Float16, 1)})
	text := inputs.Tensor{Type: onnx.String, Shape: []int64{1, 1}, Strings: [][]byte{[]byte("a")}}
	check(text, []int64{1, 2}, 0, inputs.Tensor{Type: onnx.String, Shape: []int64{1, 2}, Strings: [][]byte{[]byte("a"), {}}})
}
