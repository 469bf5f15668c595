package quantization_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/orttest"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/rewrite/quantization"
	"tuner/model/onnx/rewrite/rewritetest"
	"tuner/ort"
	"tuner/ort/sessionoption"
)

func TestMain(m *testing.M) { os.Exit(orttest.Main(m)) }

// ONNX Runtime's result equals the arithmetic to the last bit. The input's range is -55 to 200,
// which is 255 units. So DynamicQuantizeLinear's scale is 1 and its zero point 55. It rounds 0.5 to
// 0 and 1.5 to 2. The weights' columns are (127, 1, 2.5, 3.5) with scale 1, rounded to (127, 1, 2,
// 4), and (-254, 0, 10, 14) with scale 2, which gives (-127, 0, 5, 7).
//
//	-55·127 + 200·1 + 0·2 + 2·4 = -6777
//	2·(55·127 + 200·0 + 0·5 + 2·7) = 13998
func TestInt8DynamicComputesExactly(t *testing.T) {
	t.Parallel()
	values := []float32{127, -254, 1, 0, 2.5, 10, 3.5, 14}
	matMul := rewritetest.Times("x", func(g *build.Graph) string { return g.Floats("w", values, 4, 2) })
	g, x := graph()
	transposed := g.Floats("w", []float32{127, 1, 2.5, 3.5, -254, 0, 10, 14}, 2, 4)
	g.OutputAs("y", g.Node("Gemm", []string{x, transposed, g.Floats("b", []float32{0.5, 0.25}, 2)}, build.IntAttribute("transB", 1)),
		onnx.Float, onnx.Symbol("batch"), onnx.Fixed(2))
	in := map[string]inputs.Tensor{"x": orttest.FloatTensor([]float32{-55, 200, 0.5, 1.5}, 1, 4)}
	check := func(what string, m *onnx.Model, level string, want ...float32) {
		t.Helper()
		q, _ := int8Dynamic(t, m, quantization.Options{})
		s := orttest.Load(t, q, ort.SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1", sessionoption.GraphOptimization: level}})
		if diff := cmp.Diff(want, orttest.InferFloats(t, s, in)["y"]); diff != "" {
			t.Errorf("%s, optimization %s (-want +got):\n%s", what, level, diff)
		}
	}
	for _, level := range []string{sessionoption.Disabled, "all"} {
		check("MatMul", matMul, level, -6777, 13998)
		check("Gemm", g.Model(), level, -6776.5, 13998.25)
	}
}

// Every matrix of a batched weight has its own scales. ONNX Runtime accepts them, with and without
// fusion. The arithmetic is that of the test above, with another matrix beside it: (127·2, 0, 0, 0)
// and (0, 0, 0, 127·3), with scales 2 and 3.
//
//	2·(-55·127) = -13970 and 3·(2·127) = 762
func TestInt8DynamicComputesBatchedWeights(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("batched")
	x := g.Input("x", onnx.Float, onnx.Symbol("rows"), onnx.Fixed(4))
	w := g.Floats("w", []float32{127, -254, 1, 0, 2.5, 10, 3.5, 14, 254, 0, 0, 0, 0, 0, 0, 381}, 2, 4, 2)
	g.OutputAs("y", g.Node("MatMul", []string{x, w}), onnx.Float, onnx.Fixed(2), onnx.Symbol("rows"), onnx.Fixed(2))
	q, _ := int8Dynamic(t, g.Model(), quantization.Options{})
	for _, level := range []string{sessionoption.Disabled, "all"} {
		s := orttest.Load(t, q, ort.SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1", sessionoption.GraphOptimization: level}})
		got := orttest.InferFloats(t, s, map[string]inputs.Tensor{"x": orttest.FloatTensor([]float32{-55, 200, 0.5, 1.5}, 1, 4)})
		if diff := cmp.Diff([]float32{-6777, 13998, -13970, 762}, got["y"]); diff != "" {
			t.Errorf("optimization %s (-want +got):\n%s", level, diff)
		}
	}
}

// Every sample model with products can be converted and run, and computes about the same.
func TestInt8DynamicRuns(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	for name, m := range rewritetest.Samples() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, _, err := quantization.Dynamic(m, quantization.Options{})
			if errors.Is(err, rewrite.ErrNothing) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			orttest.CheckConverted(t, m, orttest.LoadOneThread(t, q), 0.99)
		})
	}
}

// OpenVINO runs the result of quantization.Dynamic, and computes about the same as the original model.
func TestOpenVINORunsInt8Dynamic(t *testing.T) {
	t.Parallel()
	orttest.OpenVINO(t)
	for name, m := range rewritetest.Samples() {
		t.Run(name, func(t *testing.T) {
			q, _, err := quantization.Dynamic(m, quantization.Options{})
			if errors.Is(err, rewrite.ErrNothing) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			orttest.CheckConverted(t, m, orttest.LoadOpenVINO(t, q), 0.99)
		})
	}
}

// The probe's error is checked for a product with known numbers. The exact result is y =
// (-6985+200+0.5·2.5+1.5·3.5, 13970+0.5·10+1.5·14) = (-6778.5, 13996). In int8 it is (-6777,
// 13998), as in TestInt8DynamicComputesExactly.
//
//	(1.5² + 2²) / (6778.5² + 13996²) = 6.25 / 241836078.25
func TestInt8SensitivityMeasures(t *testing.T) {
	t.Parallel()
	m := rewritetest.Times("x", func(g *build.Graph) string { return g.Floats("w", []float32{127, -254, 1, 0, 2.5, 10, 3.5, 14}, 4, 2) })
	probe, outputs, err := quantization.Sensitivity(m, quantization.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := orttest.InferFloats(t, orttest.LoadOneThread(t, probe), map[string]inputs.Tensor{"x": orttest.FloatTensor([]float32{-55, 200, 0.5, 1.5}, 1, 4)})
	if diff := cmp.Diff([]float32{-6778.5, 13996}, got["y"]); diff != "" {
		t.Errorf("the exact output (-want +got):\n%s", diff)
	}
	e := got[outputs["node_MatMul_0"]]
	if want := 6.25 / 241836078.25; len(e) != 1 || math.Abs(float64(e[0])/want-1) > 1e-3 { // 32-bit arithmetic
		t.Errorf("error %v, want %v", e, want)
	}
	zero := orttest.InferFloats(t, orttest.LoadOneThread(t, probe), map[string]inputs.Tensor{"x": orttest.FloatTensor([]float32{0, 0, 0, 0}, 1, 4)})
	if diff := cmp.Diff([]float32{0}, zero[outputs["node_MatMul_0"]]); diff != "" {
		t.Errorf("the error of zeros (-want +got):\n%s", diff)
	}
}

// With real weights and sentences, int8 stays close to fp32 in 8 bits, and a little less close in
// 7. On these six sentences, onnxruntime.quantization 1.31.1 gives 0.98915 and 0.98765 with the
// same recipe and the same weights.
func TestInt8DynamicOfMiniLM(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	m := orttest.ReadMiniLM(t)
	in := orttest.Sentences(t, "../../../../testdata/minilm/reference.json")
	want := orttest.InferFloats(t, orttest.LoadOneThread(t, m), in)["embedding"]
	const width = 384
	// This gives the same numbers on every processor. Those without VNNI would otherwise saturate.
	exact := ort.SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}, Entries: map[string]string{"session.x64quantprecision": "1"}}
	check := func(o quantization.Options, least float64) {
		t.Helper()
		q, summary := int8Dynamic(t, m, o)
		// 6 layers with query, key, value, output and two more
		if len(summary.Converted) != 36 || len(summary.Kept) != 0 {
			t.Errorf("%d nodes are converted, %v kept", len(summary.Converted), summary.Kept)
		}
		if o.Bits == 0 {
			checkFused(t, q)
		}
		got := orttest.InferFloats(t, orttest.Load(t, q, exact), in)["embedding"]
		var sum float64
		for i := 0; i < len(want); i += width {
			sum += orttest.Cosine(want[i:i+width], got[i:i+width])
		}
		if mean := sum * width / float64(len(want)); !(mean >= least) {
			t.Errorf("%+v: mean cosine %v, want %v", o, mean, least)
		}
	}
	check(quantization.Options{}, 0.988)
	check(quantization.Options{Bits: 7}, 0.985)
}

// ONNX Runtime's slower, exact products for processors without VNNI accept the model too.
func TestInt8DynamicRunsWithQuantPrecision(t *testing.T) {
	t.Parallel()
	m := build.MLP()
	q, _ := int8Dynamic(t, m, quantization.Options{})
	in := orttest.Random(t, m, 3, 1)
	s := orttest.Load(t, q, ort.SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}, Entries: map[string]string{"session.x64quantprecision": "1"}})
	if c := orttest.Cosine(orttest.InferFloats(t, orttest.LoadOneThread(t, m), in)["OUTPUT"], orttest.InferFloats(t, s, in)["OUTPUT"]); !(c >= 0.99) {
		t.Errorf("cosine %v", c)
	}
}

// checkFused checks that ONNX Runtime fuses each of MiniLM's 36 products with its scales and bias
// into one node.
func checkFused(t *testing.T, q *onnx.Model) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "optimized.onnx")
	orttest.Load(t, q, ort.SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}, OptimizedModelPath: path})
	optimized, err := onnx.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, op := range rewritetest.Operators(optimized) {
		count[op]++
	}
	// In each layer, query, key and value share an activation, which gives three
	// MatMulIntegerToFloat. The other products have their own activations.
	want := map[string]int{"DynamicQuantizeMatMul": 18, "MatMulIntegerToFloat": 18, "DynamicQuantizeLinear": 6, "MatMulInteger": 0}
	for op, n := range want {
		if count[op] != n {
			t.Errorf("%d nodes are %s, want %d (all: %v)", count[op], op, n, count)
		}
	}
	if n := count["MatMul"] + count["FusedMatMul"]; n != 12 { // the two of attention, whose operands both vary
		t.Errorf("%d products are in fp32, want 12 (all: %v)", n, count)
	}
	for _, node := range optimized.Nodes() {
		if op := node.GetOpType(); op == "DynamicQuantizeMatMul" && len(node.GetInput()) < 5 {
			t.Errorf("the bias of %q is added by a node of its own", node.GetName())
		}
	}
}
