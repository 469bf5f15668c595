package batch_test

import (
	"fmt"
	"math"
	"os"
	"testing"

	"tuner/internal/orttest"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/rewrite/batch"
	"tuner/model/onnx/rewrite/rewritetest"
)

func TestMain(m *testing.M) { os.Exit(orttest.Main(m)) }

// The sample models are fixed to a batch of 1 or 2, and then made symbolic again. The result for
// three rows equals the results of the fixed models for single rows.
func TestSymbolicBatchComputesTheSame(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	models := rewritetest.Samples()
	delete(models, "constant_time") // its loop takes the batch as input
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int64{1, 2} {
				free, err := batch.Symbolic(rewritetest.FixedTo(m, size))
				if err != nil {
					t.Fatal(err)
				}
				compareRows(t, m, free)
			}
		})
	}
}

// Constants with the fixed batch size, as in an export without dynamic axes, are adapted too.
func TestSymbolicBatchOfFixedExport(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	compareRows(t, build.CNN(0), mustFree(t, build.CNN(1)))
	free := mustFree(t, rewritetest.Attention(2))
	compareRows(t, rewritetest.Attention(1), free)
}

// For operators that move the batch or work along other dimensions, three rows give the same
// results as single rows.
func TestSymbolicBatchFollows(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	i, is := build.IntAttribute, build.IntsAttribute
	check := func(name string, make func(g *build.Graph, x string, list func(...int64) string) string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareRows(t, flatRows(1, make), mustFree(t, flatRows(2, make)))
		})
	}
	check("to the second place and back", func(g *build.Graph, x string, list func(...int64) string) string {
		x = g.Node("Transpose", []string{g.Node("Unsqueeze", []string{x, list(1)})}, is("perm", 1, 0, 2, 3))
		x = g.Node("Softmax", []string{g.Node("Squeeze", []string{x, list(0)})}, i("axis", 1))
		return g.Node("Transpose", []string{g.Node("Transpose", []string{x})})
	})
	check("cut, padded, repeated", func(g *build.Graph, x string, list func(...int64) string) string {
		x = g.Node("Slice", []string{x, list(0, 1), list(math.MaxInt64, 3), list(0, -1)})
		x = g.Node("Pad", []string{x, list(0, 1, 0, 0, 0, 2)})
		return g.Node("Tile", []string{x, list(1, 1, 2)})
	})
	check("cut without axes", func(g *build.Graph, x string, list func(...int64) string) string {
		return g.Node("Slice", []string{x, list(0, 1), list(math.MaxInt64, 3)})
	})
	check("parted, joined, sorted, summed", func(g *build.Graph, x string, list func(...int64) string) string {
		parts := g.Nodes("Split", 2, []string{x, list(1, 2)}, i("axis", 1))
		x = g.Node("Concat", []string{parts[1], parts[0]}, i("axis", 1))
		x = g.Nodes("TopK", 2, []string{x, list(3)})[0]
		return g.Node("CumSum", []string{x, g.Int64s("axis", []int64{2})})
	})
	check("reduced", func(g *build.Graph, x string, list func(...int64) string) string {
		mean := g.Node("ReduceMean", []string{x}, is("axes", 1), i("keepdims", 0))
		most := g.Node("Cast", []string{g.Node("ArgMax", []string{x}, i("axis", 2), i("keepdims", 0))}, i("to", int64(onnx.Float)))
		return g.Node("Add", []string{g.Node("ReduceSum", []string{mean, list(1)}), most})
	})
	check("products", func(g *build.Graph, x string, list func(...int64) string) string {
		w := g.Floats("w", []float32{1, 2, 3, 4, 5, 6, 7, 8}, 4, 2)
		x = g.Node("Flatten", []string{g.Node("MatMul", []string{x, w})})
		bias := g.Floats("bias", []float32{1, 2}, 1, 2)
		return g.Node("Gemm", []string{x, g.Floats("v", []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 6, 2), bias})
	})
	check("picked", func(g *build.Graph, x string, list func(...int64) string) string {
		indices := g.Node("ArgMax", []string{g.Node("Gather", []string{x, list(2, 0)}, i("axis", 1))}, i("axis", 2))
		table := g.Floats("table", []float32{1, 2, 3, 4, 5, 6, 7, 8}, 4, 2)
		return g.Node("Gather", []string{table, indices})
	})
	check("sizes of other dimensions", func(g *build.Graph, x string, list func(...int64) string) string {
		shape := g.Node("Cast", []string{g.Node("Shape", []string{x})}, i("to", int64(onnx.Int64)))
		width := g.Node("Gather", []string{shape, list(-1)})
		height := g.Node("Slice", []string{shape, list(1), list(2)})
		size := g.Node("Cast", []string{g.Node("Mul", []string{width, height})}, i("to", int64(onnx.Float)))
		return g.Node("Div", []string{x, size})
	})
	check("normalised", func(g *build.Graph, x string, list func(...int64) string) string {
		return g.Node("LayerNormalization", []string{x, g.Floats("gamma", []float32{1, 2, 3, 4}, 4)})
	})
}

// flatRows makes a model x FLOAT[size, 3, 4] → y FLOAT[size, …]. list makes a constant.
func flatRows(size int64, make func(g *build.Graph, x string, list func(...int64) string) string) *onnx.Model {
	g := build.NewGraph("rows")
	x := g.Input("x", onnx.Float, onnx.Fixed(size), onnx.Fixed(3), onnx.Fixed(4))
	lists := 0
	y := make(g, x, func(v ...int64) string {
		lists++
		return g.Int64s(fmt.Sprintf("list%d", lists), v, int64(len(v)))
	})
	g.OutputAs("y", g.Node("Flatten", []string{y}), onnx.Float, onnx.Fixed(size), onnx.Symbol("rest"))
	return g.Model()
}

func mustFree(t *testing.T, m *onnx.Model) *onnx.Model {
	t.Helper()
	free, err := batch.Symbolic(m)
	if err != nil {
		t.Fatal(err)
	}
	return free
}

// compareRows compares a batch of three rows in free with each row in one.
func compareRows(t *testing.T, one, free *onnx.Model) {
	t.Helper()
	const batch = 3
	in := orttest.Random(t, free, batch, 1)
	together := orttest.InferFloats(t, orttest.LoadOneThread(t, free), in)
	alone := orttest.LoadOneThread(t, one)
	for i := range batch {
		row := map[string]inputs.Tensor{}
		for name, tensor := range in {
			size := len(tensor.Data) / batch
			tensor.Shape = append([]int64{1}, tensor.Shape[1:]...)
			tensor.Data = tensor.Data[i*size : (i+1)*size]
			row[name] = tensor
		}
		for output, want := range orttest.InferFloats(t, alone, row) {
			got := together[output][i*len(want) : (i+1)*len(want)]
			for k := range want { // matrix products of other sizes sum in another order
				if d := math.Abs(float64(want[k] - got[k])); d > 1e-4*math.Max(1, math.Abs(float64(want[k]))) {
					t.Fatalf("%s, row %d, element %d: %v alone, %v in the batch", output, i, k, want[k], got[k])
				}
			}
		}
	}
}
