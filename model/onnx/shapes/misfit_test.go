package shapes_test

import (
	"testing"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/shapes"
)

// Two values of 6 elements a row are reshaped. What is not certain is no misfit.
func TestFindMisfit(t *testing.T) {
	t.Parallel()
	of := func(target ...int64) *onnx.Model {
		g := build.NewGraph("model")
		x := g.Input("x", onnx.Float, onnx.Symbol("n"), onnx.Fixed(2), onnx.Fixed(3))
		g.OutputAs("y", g.Node("Reshape", []string{x, g.Int64s("target", target, int64(len(target)))}), onnx.Float, onnx.Symbol("m"))
		return g.Model()
	}
	rows := func(n int64) map[string][]onnx.Dim {
		return map[string][]onnx.Dim{"x": {onnx.Fixed(n), onnx.Fixed(2), onnx.Fixed(3)}}
	}
	found := func(elements, divisor int64) shapes.Misfit {
		return shapes.Misfit{Node: "node_Reshape_0", Elements: elements, Divisor: divisor}
	}
	for name, c := range map[string]struct {
		target []int64
		given  map[string][]onnx.Dim
		want   shapes.Misfit
	}{
		"divides":              {[]int64{3, -1}, rows(1), shapes.Misfit{}},
		"does not divide":      {[]int64{4, -1}, rows(1), found(6, 4)},
		"divides more rows":    {[]int64{4, -1}, rows(2), shapes.Misfit{}},
		"a copied size counts": {[]int64{0, 4, -1}, rows(3), found(18, 12)},
		"a size is open":       {[]int64{4, -1}, nil, shapes.Misfit{}},
		"no row at all":        {[]int64{4, -1}, rows(0), shapes.Misfit{}},
	} {
		got, ok := shapes.FindMisfit(of(c.target...), c.given)
		if got != c.want || ok != (c.want != shapes.Misfit{}) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, ok, c.want)
		}
	}
}
