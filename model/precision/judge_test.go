package precision

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/model/precision/accuracy"
)

// The answer of a model with a fixed batch has that many rows, each with its label. Other outputs
// are one row.
func TestFixedBatch(t *testing.T) {
	t.Parallel()
	model := func(first ...onnx.Dim) *onnx.Model {
		g := build.NewGraph("fixed")
		for i, d := range first {
			g.Input(fmt.Sprint("x", i), onnx.Float, d, onnx.Fixed(2))
		}
		g.OutputAs("y", "x0", onnx.Float, first[0], onnx.Fixed(2))
		return g.Model()
	}
	four := onnx.Fixed(4)
	for _, c := range []struct {
		model *onnx.Model
		want  int64
	}{{model(four, four), 4}, {model(four, onnx.Fixed(3)), 1}, {model(onnx.Symbol("batch"), four), 1}} {
		if got := fixedBatch(c.model); got != c.want {
			t.Errorf("%v: a batch of %d, want %d", c.model.Inputs(), got, c.want)
		}
	}
	k := &Maker{batch: 4}
	out := k.asRows(map[string]inputs.Tensor{"rows": floats(make([]float32, 8), 4, 2), "boxes": floats(make([]float32, 6), 3, 2), "one": floats(nil, 1, 0)})
	for name, want := range map[string][]int64{"rows": {4, 2}, "boxes": {1, 3, 2}, "one": {1, 0}} {
		if !slices.Equal(out[name].Shape, want) {
			t.Errorf("%s became %v, want %v", name, out[name].Shape, want)
		}
	}
	if err := accuracy.CheckLabels(accuracy.Outputs{out}, []int64{0, 1, 0, 1}); err != nil {
		t.Error(err)
	}
}

// A different run is found, for every run with an element that is not finite.
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
