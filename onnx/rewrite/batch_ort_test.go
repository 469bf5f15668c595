package rewrite_test

import (
	"math"
	"testing"

	"tuner/onnx"
	"tuner/onnx/build"
	"tuner/onnx/inputs"
	"tuner/onnx/rewrite"
)

// The samples, fixed to a batch of 1 or 2 and made free again, compute for three rows what the fixed ones do for each alone.
func TestSymbolicBatchComputesTheSame(t *testing.T) {
	t.Parallel()
	runtime(t)
	models := samples()
	delete(models, "constant_time") // its loop takes the batch in
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int64{1, 2} {
				free, err := rewrite.SymbolicBatch(fixedTo(m, size))
				if err != nil {
					t.Fatal(err)
				}
				compareRows(t, m, free)
			}
		})
	}
}

// What an export without dynamic axes left in the file is adapted as well.
func TestSymbolicBatchOfFixedExport(t *testing.T) {
	t.Parallel()
	runtime(t)
	compareRows(t, build.CNN(0), mustFree(t, build.CNN(1)))
	free := mustFree(t, attention(2))
	compareRows(t, attention(1), free)
}

func mustFree(t *testing.T, m *onnx.Model) *onnx.Model {
	t.Helper()
	free, err := rewrite.SymbolicBatch(m)
	if err != nil {
		t.Fatal(err)
	}
	return free
}

// attention is self-attention over x FLOAT[batch, 5, 8] with two heads whose targets repeat the batch, heads joined with it.
func attention(batch int64) *onnx.Model {
	g := build.NewGraph("attention")
	x := g.Input("x", onnx.Float, onnx.Fixed(batch), onnx.Fixed(5), onnx.Fixed(8))
	heads := func(name string, perm ...int64) string {
		split := g.Node("Transpose", []string{reshapeTo(g, x, name+"_split", batch, 5, 2, 4)}, build.IntsAttribute("perm", 0, 2, 1, 3))
		joined := reshapeTo(g, split, name+"_join", 2*batch, 5, 4)
		return g.Node("Transpose", []string{joined}, build.IntsAttribute("perm", perm...))
	}
	scores := g.Node("Softmax", []string{g.Node("MatMul", []string{heads("q", 0, 1, 2), heads("k", 0, 2, 1)})})
	mixed := reshapeTo(g, g.Node("MatMul", []string{scores, heads("v", 0, 1, 2)}), "part", batch, 2, 5, 4)
	back := g.Node("Transpose", []string{mixed}, build.IntsAttribute("perm", 0, 2, 1, 3))
	g.OutputAs("y", reshapeTo(g, back, "merge", batch, 5, 8), onnx.Float, onnx.Fixed(batch), onnx.Fixed(5), onnx.Fixed(8))
	return g.Model()
}

// compareRows runs three rows through free at once, and each alone through one.
func compareRows(t *testing.T, one, free *onnx.Model) {
	t.Helper()
	const batch = 3
	in := generated(t, free, batch)
	together := infer(t, load(t, free), in)
	alone := load(t, one)
	for i := range batch {
		row := map[string]inputs.Tensor{}
		for name, tensor := range in {
			size := len(tensor.Data) / batch
			tensor.Shape = append([]int64{1}, tensor.Shape[1:]...)
			tensor.Data = tensor.Data[i*size : (i+1)*size]
			row[name] = tensor
		}
		for output, want := range infer(t, alone, row) {
			got := together[output][i*len(want) : (i+1)*len(want)]
			for k := range want { // products of other sizes add in another order
				if d := math.Abs(float64(want[k] - got[k])); d > 1e-4*math.Max(1, math.Abs(float64(want[k]))) {
					t.Fatalf("%s, row %d, element %d: %v alone, %v in the batch", output, i, k, want[k], got[k])
				}
			}
		}
	}
}
