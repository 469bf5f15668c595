package quantization_test

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"tuner/internal/alloctest"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/rewrite/quantization"
	"tuner/model/onnx/rewrite/rewritetest"
)

func int8Dynamic(t *testing.T, m *onnx.Model, o quantization.Options) (*onnx.Model, rewrite.Summary) {
	t.Helper()
	q, summary, err := quantization.Dynamic(m, o)
	if err != nil {
		t.Fatal(err)
	}
	return q, summary
}

// graph begins a model with the input x, FLOAT[batch, 4].
func graph() (*build.Graph, string) {
	g := build.NewGraph("test")
	return g, g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4))
}

func int8s(t *testing.T, m *onnx.Model, name string) []int8 {
	t.Helper()
	tensor := m.Initializer(name)
	if onnx.DataType(tensor.GetDataType()) != onnx.Int8 {
		t.Fatalf("%q is no INT8 initializer", name)
	}
	raw, err := m.Data(tensor)
	if err != nil {
		t.Fatal(err)
	}
	values := make([]int8, len(raw))
	for i, b := range raw {
		values[i] = int8(b)
	}
	return values
}

func TestInt8Dynamic(t *testing.T) {
	t.Parallel()
	m := rewritetest.Times("x", rewritetest.Weights)
	before := rewritetest.Digest(t, m)
	check := func(o quantization.Options, want []int8, wantScales []float32) {
		t.Helper()
		q, summary := int8Dynamic(t, m, o)
		if diff := cmp.Diff([]string{"DynamicQuantizeLinear", "MatMulInteger", "Cast", "Mul", "Mul", "Identity"}, rewritetest.Operators(q)); diff != "" {
			t.Errorf("%+v: nodes (-want +got):\n%s", o, diff)
		}
		if diff := cmp.Diff(rewrite.Summary{Converted: []string{"node_MatMul_0"}}, summary); diff != "" {
			t.Errorf("%+v: summary (-want +got):\n%s", o, diff)
		}
		if q.Initializer("w") != nil {
			t.Errorf("%+v: the float weight is still there", o)
		}
		if diff := cmp.Diff(want, int8s(t, q, "w_quantized")); diff != "" {
			t.Errorf("%+v: weights (-want +got):\n%s", o, diff)
		}
		if diff := cmp.Diff(wantScales, rewritetest.Floats(t, q, "w_scale")); diff != "" {
			t.Errorf("%+v: scales (-want +got):\n%s", o, diff)
		}
	}
	// The columns' largest magnitudes are 127 and 254. The scales are 1 and 2 with 127 steps,
	// 127/64 and 254/64 with 64.
	check(quantization.Options{}, []int8{1, 1, 3, 2, 5, 3, 127, -127}, []float32{1, 2})
	check(quantization.Options{Bits: 8}, []int8{1, 1, 3, 2, 5, 3, 127, -127}, []float32{1, 2})
	// 1/1.984 = 0.504, 3/1.984 = 1.51, 5/1.984 = 2.52; 2/3.969 = 0.504 and so on.
	check(quantization.Options{Bits: 7}, []int8{1, 1, 2, 1, 3, 2, 64, -64}, []float32{127. / 64, 254. / 64})
	// One scale of 2 for all. Ties go to the even number (1/2 → 0, 3/2 → 2, 5/2 → 2, 127/2 → 64).
	check(quantization.Options{PerTensor: true}, []int8{0, 1, 2, 2, 2, 3, 64, -127}, []float32{2})
	if rewritetest.Digest(t, m) != before {
		t.Error("the source was changed")
	}
}

// ONNX Runtime fuses the nodes only in this order.
func TestInt8DynamicWiring(t *testing.T) {
	t.Parallel()
	q, _ := int8Dynamic(t, rewritetest.Times("x", rewritetest.Weights), quantization.Options{})
	nodes := q.Nodes()
	quantize, multiply, cast, scales, scaled := nodes[0], nodes[1], nodes[2], nodes[3], nodes[4]
	check := func(what string, want, got []string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	check("inputs of DynamicQuantizeLinear", []string{"x"}, quantize.GetInput())
	a := quantize.GetOutput() // values, scale, zero point
	check("inputs of MatMulInteger", []string{a[0], "w_quantized", a[2], "w_zero_point"}, multiply.GetInput())
	check("inputs of Cast", multiply.GetOutput(), cast.GetInput())
	check("inputs of the scales' product", []string{a[1], "w_scale"}, scales.GetInput())
	check("inputs of the last product", []string{cast.GetOutput()[0], scales.GetOutput()[0]}, scaled.GetInput())
	check("outputs of the last product", []string{"MatMul_0"}, scaled.GetOutput())
	if diff := cmp.Diff([]int8{0}, int8s(t, q, "w_zero_point")); diff != "" {
		t.Errorf("zero point (-want +got):\n%s", diff)
	}
}

func TestInt8DynamicShares(t *testing.T) {
	t.Parallel()
	g, x := graph()
	w := g.Floats("w", slices.Repeat([]float32{1, 2, 3, 4}, 4), 4, 4)
	a := g.Node("MatMul", []string{x, w})
	b := g.Node("MatMul", []string{x, g.Floats("other", slices.Repeat([]float32{5, 6, 7, 8}, 4), 4, 4)})
	c := g.Node("MatMul", []string{g.Node("Add", []string{a, b}), w})
	rows := g.Node("Gather", []string{w, g.Int64s("row", []int64{0})})
	g.OutputAs("y", g.Node("Add", []string{c, rows}), onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4))
	q, _ := int8Dynamic(t, g.Model(), quantization.Options{})
	var initializers []string
	for _, tensor := range q.Initializers() {
		initializers = append(initializers, tensor.GetName())
	}
	// Gather uses one weight too, so it stays as floats. The weight of both products is quantized
	// once.
	want := []string{"w", "row", "w_quantized", "w_scale", "w_zero_point", "other_quantized", "other_scale", "other_zero_point"}
	if diff := cmp.Diff(want, initializers); diff != "" {
		t.Errorf("initializers (-want +got):\n%s", diff)
	}
	count := func(op string) (n int) {
		for _, got := range rewritetest.Operators(q) {
			if got == op {
				n++
			}
		}
		return n
	}
	if quantizations, products := count("DynamicQuantizeLinear"), count("MatMulInteger"); quantizations != 2 || products != 3 {
		t.Errorf("%d activations are quantized for %d products, want 2 for 3", quantizations, products)
	}
}

// gemm makes a model that multiplies x by the transpose of the transposed weights, and adds a bias.
func gemm() *onnx.Model {
	g, x := graph()
	w := g.Floats("w", []float32{1, 3, 5, 127, 2, 4, 6, -254}, 2, 4)
	y := g.Node("Gemm", []string{x, w, g.Floats("bias", []float32{1, 2}, 2)}, build.IntAttribute("transB", 1))
	g.OutputAs("y", y, onnx.Float, onnx.Symbol("batch"), onnx.Fixed(2))
	return g.Model()
}

func TestInt8DynamicGemm(t *testing.T) {
	t.Parallel()
	q, summary := int8Dynamic(t, gemm(), quantization.Options{})
	if diff := cmp.Diff([]string{"DynamicQuantizeLinear", "MatMulInteger", "Cast", "Mul", "Mul", "Add", "Identity"}, rewritetest.Operators(q)); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	add := q.Nodes()[5]
	if add.GetInput()[1] != "bias" || add.GetOutput()[0] != "Gemm_0" || len(summary.Converted) != 1 {
		t.Errorf("the bias is added by %v; converted: %v", add, summary.Converted)
	}
	// As in TestInt8Dynamic: columns of the transposed matrix.
	if diff := cmp.Diff([]int8{1, 1, 3, 2, 5, 3, 127, -127}, int8s(t, q, "w_quantized")); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{4, 2}, q.Initializer("w_quantized").GetDims()); diff != "" {
		t.Errorf("shape (-want +got):\n%s", diff)
	}
}

// A weight with several matrices has one scale per matrix and column, in a shape that broadcasts
// over rows.
func TestInt8DynamicBatchedWeight(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("batched")
	x := g.Input("x", onnx.Float, onnx.Fixed(2), onnx.Symbol("rows"), onnx.Fixed(2))
	w := g.Floats("w", []float32{127, 254, 0, 2, 381, 508, 3, 4}, 2, 2, 2)
	g.OutputAs("y", g.Node("MatMul", []string{x, w}), onnx.Float, onnx.Fixed(2), onnx.Symbol("rows"), onnx.Fixed(2))
	q, _ := int8Dynamic(t, g.Model(), quantization.Options{})
	// Matrix 0 has the columns (127, 0) and (254, 2), matrix 1 (381, 3) and (508, 4). The scales
	// are 1, 2, 3, 4.
	if diff := cmp.Diff([]int8{127, 127, 0, 1, 127, 127, 1, 1}, int8s(t, q, "w_quantized")); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float32{1, 2, 3, 4}, rewritetest.Floats(t, q, "w_scale")); diff != "" {
		t.Errorf("scales (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{2, 1, 2}, q.Initializer("w_scale").GetDims()); diff != "" {
		t.Errorf("shape of the scales (-want +got):\n%s", diff)
	}
}

// The scales of a batch of matrices fit a product with rows. The product of a vector has none.
func TestInt8DynamicKeepsVectorTimesBatch(t *testing.T) {
	t.Parallel()
	g, x := graph()
	square := slices.Repeat([]float32{1, 2, 3, 4}, 4)
	rows := g.Node("MatMul", []string{x, g.Floats("w0", slices.Concat(square, square), 2, 4, 4)})
	vector := g.Input("vector", onnx.Float, onnx.Fixed(4))
	product := g.Node("MatMul", []string{vector, g.Floats("w1", slices.Concat(square, square), 2, 4, 4)})
	g.OutputAs("y0", rows, onnx.Float)
	g.OutputAs("y1", product, onnx.Float, onnx.Fixed(2), onnx.Fixed(4))
	_, summary := int8Dynamic(t, g.Model(), quantization.Options{})
	want := rewrite.Summary{Converted: []string{"node_MatMul_0"}, Kept: []rewrite.Kept{{Node: "node_MatMul_1", Op: "MatMul",
		Reason: "its weight has several matrices, and its first operand is a vector or has no known rank"}}}
	if diff := cmp.Diff(want, summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

// unfolded makes a model that multiplies x by weights as exporters write them: shared ones with
// Identity, unfolded ones with Transpose.
func unfolded() *onnx.Model {
	return rewritetest.Times("x", func(g *build.Graph) string {
		w := g.Floats("w", []float32{1, 3, 5, 127, 2, 4, 6, -254}, 2, 4)
		return g.Node("Transpose", []string{g.Node("Identity", []string{w})}, build.IntsAttribute("perm", 1, 0))
	})
}

func TestInt8DynamicSeesThroughViews(t *testing.T) {
	t.Parallel()
	q, _ := int8Dynamic(t, unfolded(), quantization.Options{})
	if diff := cmp.Diff([]int8{1, 1, 3, 2, 5, 3, 127, -127}, int8s(t, q, "w_quantized")); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
	if slices.Contains(rewritetest.Operators(q), "Transpose") {
		t.Errorf("the float weight is still transposed: %v", rewritetest.Operators(q))
	}
}

func TestInt8DynamicTwice(t *testing.T) {
	t.Parallel()
	for name, m := range rewritetest.Samples() {
		q, _, err := quantization.Dynamic(m, quantization.Options{})
		if errors.Is(err, rewrite.ErrNothing) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		again, _ := int8Dynamic(t, m, quantization.Options{})
		if rewritetest.Digest(t, again) != rewritetest.Digest(t, q) {
			t.Errorf("%s: the same model became something else", name)
		}
		if _, _, err := quantization.Dynamic(q, quantization.Options{}); !errors.Is(err, rewrite.ErrNothing) {
			t.Errorf("%s: converting the result gave %v", name, err)
		}
	}
}

func TestInt8DynamicKeeps(t *testing.T) {
	t.Parallel()
	g, x := graph()
	square := func(name string) string { return g.Floats(name, slices.Repeat([]float32{1, 2, 3, 4}, 4), 4, 4) }
	converted := g.Node("MatMul", []string{x, square("w0")})
	kept := g.Node("MatMul", []string{converted, square("w1")})
	first := g.Node("MatMul", []string{square("w2"), g.Node("Transpose", []string{kept})})
	vector := g.Node("MatMul", []string{kept, g.Floats("w3", []float32{1, 2, 3, 4}, 4)})
	scaled := g.Node("Gemm", []string{kept, square("w4")}, build.FloatAttribute("alpha", 0.5))
	shifted := g.Node("Gemm", []string{kept, square("w5"), vector}, build.FloatAttribute("beta", 2))
	turned := g.Node("Gemm", []string{kept, square("w6")}, build.IntAttribute("transA", 1))
	both := g.Node("MatMul", []string{kept, g.Node("Transpose", []string{kept})})
	for i, v := range []string{first, vector, scaled, shifted, turned, both} {
		g.OutputAs("y"+string(rune('0'+i)), v, onnx.Float)
	}
	q, summary := int8Dynamic(t, g.Model(), quantization.Options{Keep: []string{"node_MatMul_1"}})
	want := rewrite.Summary{Converted: []string{"node_MatMul_0"}, Kept: []rewrite.Kept{
		{Node: "node_MatMul_1", Op: "MatMul", Reason: "kept on request"},
		{Node: "node_MatMul_2", Op: "MatMul", Reason: "its constant is the first operand; only a constant second operand is converted"},
		{Node: "node_MatMul_3", Op: "MatMul", Reason: "its weight is a vector"},
		{Node: "node_Gemm_0", Op: "Gemm", Reason: "its alpha is 0.5; only 1 is converted"},
		{Node: "node_Gemm_1", Op: "Gemm", Reason: "its beta is 2; only 1 is converted"},
		{Node: "node_Gemm_2", Op: "Gemm", Reason: "it transposes its first operand (transA)"},
	}} // a product of two computed values is no candidate
	if diff := cmp.Diff(want, summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if q.Initializer("w1") == nil || q.Initializer("w0") != nil {
		t.Error("the wrong weights stayed")
	}
}

// Products inside a subgraph are listed. Their weight may be the subgraph's, a constant node in it,
// or captured.
func TestInt8DynamicKeepsSubgraphs(t *testing.T) {
	t.Parallel()
	g, x := graph()
	square := slices.Repeat([]float32{1, 2, 3, 4}, 4)
	captured := g.Floats("captured", square, 4, 4)
	body := g.Subgraph("body")
	body.Input("iteration", onnx.Int64)
	body.Input("go_on", onnx.Bool)
	body.Input("state", onnx.Float)
	body.OutputAs("go_on_next", "go_on", onnx.Bool)
	own := body.Node("MatMul", []string{"state", body.Floats("own", square, 4, 4)})
	constant := body.Node("Constant", nil, rewritetest.Attribute("value", &onnxpb.AttributeProto{T: &onnxpb.TensorProto{
		DataType: proto.Int32(int32(onnx.Float)), Dims: []int64{4, 4}, FloatData: square,
	}}))
	product := body.Node("Gemm", []string{body.Node("MatMul", []string{own, captured}), constant})
	body.OutputAs("state_next", body.Node("MatMul", []string{product, own}), onnx.Float) // two computed values
	start := g.Node("MatMul", []string{x, captured})
	end := g.Node("Loop", []string{g.Int64s("iterations", []int64{2}), g.True("forever"), start}, build.GraphAttribute("body", body))
	g.OutputAs("y", end, onnx.Float)
	q, summary := int8Dynamic(t, g.Model(), quantization.Options{})
	const reason = "it is inside a subgraph, which is left alone"
	want := rewrite.Summary{Converted: []string{"node_MatMul_3"}, Kept: []rewrite.Kept{
		{Node: "node_Loop_0/node_MatMul_0", Op: "MatMul", Reason: reason},
		{Node: "node_Loop_0/node_MatMul_1", Op: "MatMul", Reason: reason},
		{Node: "node_Loop_0/node_Gemm_0", Op: "Gemm", Reason: reason},
	}}
	if diff := cmp.Diff(want, summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if q.Initializer("captured") == nil {
		t.Error("the weight that the subgraph captures is gone")
	}
}

// ErrNothing has the reason in its text.
func TestInt8DynamicFindsNothing(t *testing.T) {
	t.Parallel()
	check := func(m *onnx.Model, want string) {
		t.Helper()
		_, _, err := quantization.Dynamic(m, quantization.Options{})
		if !errors.Is(err, rewrite.ErrNothing) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
		if _, _, err := quantization.Sensitivity(m, quantization.Options{}); !errors.Is(err, rewrite.ErrNothing) {
			t.Errorf("the probe gave %v", err)
		}
	}
	check(build.Simple(), "it has no MatMul or Gemm with constant weights")
	check(build.ConstantTime(1), `MatMul "node_Loop_0/node_MatMul_0": it is inside a subgraph`)
	constant := func(t onnx.DataType, size int, dims ...int64) func(*build.Graph) string {
		return func(g *build.Graph) string {
			return g.Node("Constant", nil, rewritetest.Attribute("value", &onnxpb.AttributeProto{T: &onnxpb.TensorProto{
				DataType: proto.Int32(int32(t)), Dims: dims, RawData: make([]byte, size),
			}}))
		}
	}
	check(rewritetest.Times("x", constant(onnx.Float16, 16, 4, 2)), "its weight is FLOAT16; only FLOAT is converted")
	check(rewritetest.Times("x", constant(onnx.Float, 0, 4, 0)), "its weight is empty")
	// 66312·127·255 = 2147514120 is the first product that exceeds 2^31 = 2147483648.
	check(rewritetest.Times("x", constant(onnx.Float, 4*66312, 66312, 1)), "its weight has 66312 rows")
	check(rewritetest.Times("x", constant(onnx.Int32, 32, 4, 2)), "it has no MatMul")
	quantized := func(op, domain string) *onnx.Model {
		return rewritetest.Changed(rewritetest.Times("x", rewritetest.Weights), func(p *onnxpb.ModelProto) {
			p.Graph.Node[1].OpType, p.Graph.Node[1].Domain = proto.String(op), proto.String(domain)
		})
	}
	for _, op := range []string{"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "MatMulInteger"} {
		check(quantized(op, ""), "it is quantized already (the node \"node_Identity_0\" is a "+op)
	}
	for _, op := range []string{"QGemm", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "MatMulNBits", "GatherBlockQuantized"} {
		check(quantized(op, "com.microsoft"), "it is quantized already (the node \"node_Identity_0\" is a "+op)
	}
	check(rewritetest.Changed(rewritetest.Times("x", rewritetest.Weights), func(p *onnxpb.ModelProto) {
		p.Graph.Node[0].OpType, p.Graph.Node[0].Domain = proto.String("FusedMatMul"), proto.String("com.microsoft")
	}), "it is a fused operator of ONNX Runtime")
}

func TestInt8DynamicRefuses(t *testing.T) {
	t.Parallel()
	check := func(m *onnx.Model, o quantization.Options, want ...string) {
		t.Helper()
		_, _, err := quantization.Dynamic(m, o)
		_, _, probeErr := quantization.Sensitivity(m, o)
		for _, w := range want {
			if err == nil || errors.Is(err, rewrite.ErrNothing) || !strings.Contains(err.Error(), w) {
				t.Errorf("error %v does not say %q", err, w)
			}
			if probeErr == nil || !strings.Contains(probeErr.Error(), w) {
				t.Errorf("the probe's error %v does not say %q", probeErr, w)
			}
		}
	}
	m := rewritetest.Times("x", rewritetest.Weights)
	check(m, quantization.Options{Bits: 4}, "weights of 4 bits", "choose 7 or 8")
	check(m, quantization.Options{Keep: []string{"node_MatMul_0", "nope"}}, `no nodes ["nope"]`)
	old := rewritetest.Changed(m, func(p *onnxpb.ModelProto) { p.OpsetImport[0].Version = proto.Int64(10) })
	check(old, quantization.Options{}, "it uses version 10 of ONNX's operator set", "need 11", "opset_version")
	for _, bad := range []float64{math.NaN(), math.Inf(-1)} {
		check(rewritetest.Times("x", func(g *build.Graph) string {
			return g.Floats("w", []float32{1, 2, 3, 4, 5, float32(bad), 7, 8}, 4, 2)
		}), quantization.Options{}, `the node "node_MatMul_0"`, `its weight "w" holds`, "element 5 of 8")
	}
}

func TestInt8DynamicTellsOfDenormalWeights(t *testing.T) {
	t.Parallel()
	_, summary := int8Dynamic(t, rewritetest.Times("x", func(g *build.Graph) string {
		return g.Floats("w", []float32{1, 1, 1, 1, 1, 1, 0x1p-127, 0x1p-149}, 4, 2)
	}), quantization.Options{})
	if len(summary.Notes) != 1 || !strings.Contains(summary.Notes[0], `the weight "w" has 2 denormal numbers`) {
		t.Errorf("notes: %q", summary.Notes)
	}
}

func TestInt8Sensitivity(t *testing.T) {
	t.Parallel()
	m := build.MLP()
	probe, outputs, err := quantization.Sensitivity(m, quantization.Options{Keep: []string{"node_MatMul_1"}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"node_MatMul_0": "node_MatMul_0_int8_error", "node_MatMul_2": "node_MatMul_2_int8_error"}
	if diff := cmp.Diff(want, outputs); diff != "" {
		t.Errorf("outputs by node (-want +got):\n%s", diff)
	}
	var values []string
	for _, v := range probe.Outputs() {
		values = append(values, v.String())
	}
	wantOutputs := []string{"OUTPUT FLOAT[batch,8]", "node_MatMul_0_int8_error FLOAT[1]", "node_MatMul_2_int8_error FLOAT[1]"}
	if diff := cmp.Diff(wantOutputs, values); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	if m.Initializer("layer0.weight") == nil || probe.Initializer("layer0.weight") == nil {
		t.Error("the exact product lost its weight")
	}
}

// External weights are read from their file. The result has its weights inside.
func TestInt8DynamicReadsExternalData(t *testing.T) {
	t.Parallel()
	m := build.MLP()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Write(path, 1); err != nil { // a limit of one byte moves all larger tensors outside
		t.Fatal(err)
	}
	outside, err := onnx.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(outside.ExternalFiles()) == 0 {
		t.Fatal("the model has no external data")
	}
	want, _ := int8Dynamic(t, m, quantization.Options{})
	got, _ := int8Dynamic(t, outside, quantization.Options{})
	if len(got.ExternalFiles()) > 0 { // biases are too small to be stored outside
		t.Errorf("%v are still needed", got.ExternalFiles())
	}
	for _, name := range []string{"layer0.weight_quantized", "layer1.weight_quantized"} {
		if diff := cmp.Diff(int8s(t, want, name), int8s(t, got, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// No model makes the conversion panic. A second conversion of its result finds nothing to convert.
func FuzzInt8Dynamic(f *testing.F) {
	// small models, since fuzzing slows down with the size
	for _, m := range []*onnx.Model{build.Simple(), rewritetest.Times("x", rewritetest.Weights), gemm(), unfolded()} {
		data, err := proto.Marshal(m.Proto())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer alloctest.Bound(t, len(data))()
		m, err := onnx.Parse("model.onnx", data)
		if err != nil {
			return
		}
		q, _, err := quantization.Dynamic(m, quantization.Options{})
		if err != nil {
			return
		}
		if _, _, err := quantization.Dynamic(q, quantization.Options{}); !errors.Is(err, rewrite.ErrNothing) {
			t.Errorf("converting the result gave %v", err)
		}
	})
}
