package precision

import (
	"testing"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
)

// Small rows are 64, large ones as many as 2²¹ elements allow, and never less than 8.
func TestSyntheticRows(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("image")
	x := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(3), onnx.Symbol("height"), onnx.Symbol("width"))
	g.OutputAs("y", g.Node("Relu", []string{x}), onnx.Float, onnx.Symbol("batch"), onnx.Fixed(3), onnx.Symbol("height"), onnx.Symbol("width"))
	m := g.Model()
	for side, want := range map[int64]int{
		32:  64,
		96:  64, // 3·96² = 27648, and 2²¹/27648 = 75
		224: 13, // 3·224² = 150528, and 2²¹/150528 = 13.9
		640: 8,  // 3·640² = 1228800
	} {
		if got := SyntheticRows(m, inputs.Options{Shape: map[string][]int64{"x": {3, side, side}}}); got != want {
			t.Errorf("images of %d: %d rows, want %d", side, got, want)
		}
	}
	if got := SyntheticRows(m, inputs.Options{Shape: map[string][]int64{"unknown": {1}}}); got != DefaultRows {
		t.Errorf("shapes that do not fit: %d rows, want %d", got, DefaultRows)
	}
}
