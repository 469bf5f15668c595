package quantization_test

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
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

func int8Static(t *testing.T, m *onnx.Model, o quantization.StaticOptions) (*onnx.Model, rewrite.Summary) {
	t.Helper()
	q, summary, err := quantization.Static(m, o)
	if err != nil {
		t.Fatal(err)
	}
	return q, summary
}

func activations(t *testing.T, m *onnx.Model) []string {
	t.Helper()
	values, err := quantization.Activations(m)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// alike gives all activations of a model the same range.
func alike(t *testing.T, m *onnx.Model, least, most float32) map[string]quantization.Range {
	t.Helper()
	ranges := map[string]quantization.Range{}
	for _, value := range activations(t, m) {
		ranges[value] = quantization.Range{Min: least, Max: most}
	}
	return ranges
}

// pixels begins a model with the input x, FLOAT[batch, 1, 2, 2].
func pixels() (*build.Graph, string) {
	g := build.NewGraph("test")
	return g, g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(1), onnx.Fixed(2), onnx.Fixed(2))
}

// conv1 adds a 1×1 convolution with the same number of input and output channels.
func conv1(g *build.Graph, x, w string, channels int64) string {
	values := make([]float32, channels*channels)
	for i := range values {
		values[i] = float32(i + 1)
	}
	return g.Node("Conv", []string{x, g.Floats(w, values, channels, channels, 1, 1)})
}

func output(g *build.Graph, value string) *onnx.Model {
	g.OutputAs("y", value, onnx.Float)
	return g.Model()
}

// constants returns a model's initializers with one element, by name.
func constants(t *testing.T, m *onnx.Model) (scales map[string]float32, zeros map[string]uint8) {
	t.Helper()
	scales, zeros = map[string]float32{}, map[string]uint8{}
	for _, tensor := range m.Initializers() {
		if len(tensor.GetDims()) > 0 {
			continue
		}
		switch onnx.DataType(tensor.GetDataType()) {
		case onnx.Float:
			scales[tensor.GetName()] = rewritetest.Floats(t, m, tensor.GetName())[0]
		case onnx.Uint8:
			zeros[tensor.GetName()] = tensor.GetRawData()[0]
		}
	}
	return scales, zeros
}

// A bias may get its name after the product. The joined node comes after both.
func TestInt8StaticOrdersJoinedBiases(t *testing.T) {
	t.Parallel()
	g, x := graph()
	product := g.Node("MatMul", []string{x, g.Floats("w", slices.Repeat([]float32{1, 2, 3, 4}, 4), 4, 4)})
	bias := g.Node("Identity", []string{g.Floats("b", []float32{1, 2, 3, 4}, 4)})
	sum := g.Node("Add", []string{product, bias})
	m := output(g, g.Node("MatMul", []string{sum, g.Floats("w1", slices.Repeat([]float32{1, 2, 3, 4}, 4), 4, 4)}))
	q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: alike(t, m, -51, 204), Keep: []string{"node_MatMul_0"}})
	known := map[string]bool{}
	for _, v := range q.Inputs() {
		known[v.Name] = true
	}
	for _, node := range q.Nodes() {
		for _, name := range node.GetInput() {
			if q.Initializer(name) == nil && !known[name] {
				t.Errorf("%q is not there yet for %v", name, node.GetOutput())
			}
		}
		for _, name := range node.GetOutput() {
			known[name] = true
		}
	}
	if !slices.Contains(rewritetest.Operators(q), "Gemm") {
		t.Errorf("nothing was joined: %v", rewritetest.Wiring(q))
	}
}

// Between two layers values stay integers, and the zero point 0 replaces Relu. The last layer
// computes in float. A product and its bias in two nodes become one node.
func TestInt8StaticWiring(t *testing.T) {
	t.Parallel()
	g, x := graph()
	dense := func(name, x string) string {
		product := g.Node("MatMul", []string{x, g.Floats(name, slices.Repeat([]float32{1, 2, 3, 4}, 4), 4, 4)})
		return g.Node("Add", []string{g.Floats(name+"_bias", []float32{1, 2, 3, 4}, 4), product})
	}
	m := output(g, dense("w1", g.Node("Relu", []string{dense("w0", x)})))
	before := rewritetest.Digest(t, m)
	q, summary := int8Static(t, m, quantization.StaticOptions{Ranges: alike(t, m, -51, 204)})
	want := []string{
		"x_QuantizeLinear_output = QuantizeLinear(x, x_scale, x_zero_point)",
		"x_decoded = DequantizeLinear(x_QuantizeLinear_output, x_scale, x_zero_point)",
		"w0_DequantizeLinear_output = DequantizeLinear(w0_quantized, w0_scale, w0_zero_point)",
		"w0_bias_DequantizeLinear_output = DequantizeLinear(w0_bias_quantized, w0_bias_scale)",
		"Relu_0_float = Gemm(x_decoded, w0_DequantizeLinear_output, w0_bias_DequantizeLinear_output)",
		"Relu_0_QuantizeLinear_output = QuantizeLinear(Relu_0_float, Relu_0_scale, Relu_0_zero_point)",
		"Relu_0 = DequantizeLinear(Relu_0_QuantizeLinear_output, Relu_0_scale, Relu_0_zero_point)",
		"w1_DequantizeLinear_output = DequantizeLinear(w1_quantized, w1_scale, w1_zero_point)",
		"w1_bias_DequantizeLinear_output = DequantizeLinear(w1_bias_quantized, w1_bias_scale)",
		"Add_1 = Gemm(Relu_0, w1_DequantizeLinear_output, w1_bias_DequantizeLinear_output)",
		"y = Identity(Add_1)",
	}
	if diff := cmp.Diff(want, rewritetest.Wiring(q)); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(rewrite.Summary{Converted: []string{"node_MatMul_0", "node_MatMul_1"}}, summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	// -51 to 204 are 255 units, and zero is 51 above the minimum. Relu's result is not negative: 0
	// to 204 in 255 steps.
	scales, zeros := constants(t, q)
	if diff := cmp.Diff(map[string]float32{"x_scale": 1, "Relu_0_scale": 204. / 255}, scales); diff != "" {
		t.Errorf("scales (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]uint8{"x_zero_point": 51, "Relu_0_zero_point": 0}, zeros); diff != "" {
		t.Errorf("zero points (-want +got):\n%s", diff)
	}
	if rewritetest.Digest(t, m) != before {
		t.Error("the source was changed")
	}
}

// Scale and zero point by range. Zero must be representable, so a range without it is widened.
func TestInt8StaticParameters(t *testing.T) {
	t.Parallel()
	check := func(least, most, wantScale float32, wantZero uint8) {
		t.Helper()
		m := rewritetest.Times("x", rewritetest.Weights)
		q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: alike(t, m, least, most)})
		scales, zeros := constants(t, q)
		if scales["x_scale"] != wantScale || zeros["x_zero_point"] != wantZero {
			t.Errorf("%v to %v: scale %v, zero point %v, want %v and %v", least, most, scales["x_scale"], zeros["x_zero_point"], wantScale, wantZero)
		}
	}
	check(0, 255, 1, 0)
	check(-510, 0, 2, 255)
	check(-102, 408, 2, 51)
	check(3, 255, 1, 0)      // 0 to 255
	check(-255, -1, 1, 255)  // -255 to 0
	check(-0.3, 254.7, 1, 0) // 0.3 units are rounded
	check(0, 0, 1, 0)
	check(0, 1e-40, 1, 0) // the scale cannot be that small
	check(-math.MaxFloat32/2, math.MaxFloat32/2, math.MaxFloat32/255, 128)
}

// Weights are those of quantization.Dynamic. Biases are in units of the activation's scale times the
// weights' scale.
func TestInt8StaticWeights(t *testing.T) {
	t.Parallel()
	m := gemm() // columns (1, 3, 5, 127) and (2, 4, 6, -254), bias (1, 2)
	for bits, want := range map[int][]int8{0: {1, 1, 3, 2, 5, 3, 127, -127}, 8: {1, 1, 3, 2, 5, 3, 127, -127}, 7: {1, 1, 2, 1, 3, 2, 64, -64}} {
		q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: alike(t, m, 0, 127.5), Bits: bits})
		if diff := cmp.Diff(want, int8s(t, q, "w_quantized")); diff != "" {
			t.Errorf("%d bits (-want +got):\n%s", bits, diff)
		}
	}
	q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: alike(t, m, 0, 127.5)})
	if diff := cmp.Diff([]float32{1, 2}, rewritetest.Floats(t, q, "w_scale")); diff != "" {
		t.Errorf("scales of the weights (-want +got):\n%s", diff)
	}
	// The activation's scale is 0.5, so the units are 0.5 and 1.
	if diff := cmp.Diff([]float32{0.5, 1}, rewritetest.Floats(t, q, "bias_scale")); diff != "" {
		t.Errorf("scales of the bias (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int32{2, 2}, int32s(t, q, "bias_quantized")); diff != "" {
		t.Errorf("bias (-want +got):\n%s", diff)
	}
	for _, node := range q.Nodes() {
		if node.GetOpType() == "Gemm" && len(node.GetAttribute()) > 0 {
			t.Errorf("the weights are transposed, and the node has %v", node.GetAttribute())
		}
	}
}

func int32s(t *testing.T, m *onnx.Model, name string) []int32 {
	t.Helper()
	tensor := m.Initializer(name)
	if onnx.DataType(tensor.GetDataType()) != onnx.Int32 {
		t.Fatalf("%q is no INT32 initializer", name)
	}
	raw, err := m.Data(tensor)
	if err != nil {
		t.Fatal(err)
	}
	var values []int32
	for ; len(raw) > 0; raw = raw[4:] {
		values = append(values, int32(binary.LittleEndian.Uint32(raw)))
	}
	return values
}

// A channel with zero weights gets the scale that its bias needs: 3 is 2^24 units of 3/2^24. A
// channel with tiny weights and a large bias gets the smallest scale with which the bias fits into
// 30 bits. For example, a bias of 4 is 2^30 units of 2^-28, and a weight of 2^-27 is 2 units.
func TestInt8StaticFitsBiases(t *testing.T) {
	t.Parallel()
	g, x := graph()
	w := g.Floats("w", []float32{127, 0, 0x1p-27, 1, 0, 0, 1, 0, 0, 1, 0, 0}, 4, 3)
	m := output(g, g.Node("Gemm", []string{x, w, g.Floats("bias", []float32{5, 3, 4}, 3)}))
	q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: alike(t, m, 0, 255)})
	if diff := cmp.Diff([]float32{1, 3. / (1 << 24), 0x1p-28}, rewritetest.Floats(t, q, "w_scale")); diff != "" {
		t.Errorf("scales (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int8{127, 0, 2, 1, 0, 0, 1, 0, 0, 1, 0, 0}, int8s(t, q, "w_quantized")); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int32{5, 1 << 24, 1 << 30}, int32s(t, q, "bias_quantized")); diff != "" {
		t.Errorf("biases (-want +got):\n%s", diff)
	}
}

func TestInt8StaticShares(t *testing.T) {
	t.Parallel()
	g, x := graph()
	w := g.Floats("w", slices.Repeat([]float32{1, 2, 3, 4}, 4), 4, 4)
	a := g.Node("MatMul", []string{x, w})
	b := g.Node("MatMul", []string{g.Node("Softmax", []string{a}), w})
	rows := g.Node("Gather", []string{w, g.Int64s("row", []int64{0})})
	m := output(g, g.Node("Add", []string{b, rows}))
	q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: alike(t, m, -1, 1)})
	var names []string
	for _, tensor := range q.Initializers() {
		names = append(names, tensor.GetName())
	}
	// Gather uses one weight too, so it stays as floats. The weight of both products is quantized
	// once.
	want := []string{"w", "row", "x_scale", "x_zero_point", "w_quantized", "w_scale", "w_zero_point", "Softmax_0_scale", "Softmax_0_zero_point"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("initializers (-want +got):\n%s", diff)
	}
}

func TestInt8StaticTwice(t *testing.T) {
	t.Parallel()
	for name, m := range rewritetest.Samples() {
		values, err := quantization.Activations(m)
		if errors.Is(err, rewrite.ErrNothing) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(values) == 0 {
			t.Errorf("%s: there is something to convert, but no activation", name)
		}
		o := quantization.StaticOptions{Ranges: alike(t, m, -1, 1)}
		q, _ := int8Static(t, m, o)
		if again, _ := int8Static(t, m, o); rewritetest.Digest(t, again) != rewritetest.Digest(t, q) {
			t.Errorf("%s: the same model became something else", name)
		}
		if _, _, err := quantization.Static(q, o); !errors.Is(err, rewrite.ErrNothing) {
			t.Errorf("%s: converting the result gave %v", name, err)
		}
	}
}

func TestInt8StaticKeeps(t *testing.T) {
	t.Parallel()
	g, x := pixels()
	converted := conv1(g, x, "w0", 1)
	kept := conv1(g, converted, "w1", 1)
	biased := g.Node("Conv", []string{kept, g.Floats("w2", []float32{1}, 1, 1, 1, 1), g.Input("bias", onnx.Float, onnx.Fixed(1))})
	varying := g.Node("Conv", []string{biased, g.Input("weight", onnx.Float, onnx.Fixed(1), onnx.Fixed(1), onnx.Fixed(1), onnx.Fixed(1))})
	batched := g.Node("MatMul", []string{varying, g.Floats("w3", []float32{1, 2, 3, 4}, 1, 2, 2)})
	scaled := g.Node("Gemm", []string{g.Node("Flatten", []string{batched}), g.Floats("w4", []float32{1, 2, 3, 4}, 4, 1)}, build.FloatAttribute("alpha", 0.5))
	column := g.Floats("column", []float32{1, 2, 3, 4}, 4, 1)
	added := g.Node("Gemm", []string{scaled, g.Floats("w5", []float32{1, 2, 3, 4}, 1, 4), column})
	m := output(g, added)
	_, summary := int8Static(t, m, quantization.StaticOptions{Ranges: alike(t, m, -1, 1), Keep: []string{"node_Conv_1"}})
	want := rewrite.Summary{Converted: []string{"node_Conv_0"}, Kept: []rewrite.Kept{
		{Node: "node_Conv_1", Op: "Conv", Reason: "kept on request"},
		{Node: "node_Conv_2", Op: "Conv", Reason: "its bias is computed"},
		{Node: "node_MatMul_0", Op: "MatMul", Reason: "its weight has 3 dimensions; only matrices are converted"},
		{Node: "node_Gemm_0", Op: "Gemm", Reason: "its alpha is 0.5; only 1 is converted"},
		{Node: "node_Gemm_1", Op: "Gemm", Reason: "its bias has the shape [4 1]"},
	}} // a convolution with varying weights is no candidate
	if diff := cmp.Diff(want, summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

// ErrNothing has the reason in its text.
func TestInt8StaticFindsNothing(t *testing.T) {
	t.Parallel()
	check := func(m *onnx.Model, want string, keep ...string) {
		t.Helper()
		o := quantization.StaticOptions{Keep: keep}
		_, _, err := quantization.Static(m, o)
		if !errors.Is(err, rewrite.ErrNothing) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
		if _, _, err := quantization.StaticSensitivity(m, o); !errors.Is(err, rewrite.ErrNothing) {
			t.Errorf("the probe gave %v", err)
		}
	}
	check(build.Simple(), "it has no Conv, MatMul or Gemm with constant weights")
	check(build.ConstantTime(1), `MatMul "node_Loop_0/node_MatMul_0": it is inside a subgraph`)
	check(rewritetest.Times("x", rewritetest.Weights), `MatMul "node_MatMul_0": kept on request`, "node_MatMul_0")
	g, _ := pixels() // a convolution of a constant
	check(output(g, conv1(g, g.Floats("c", []float32{1, 2, 3, 4}, 1, 1, 2, 2), "w", 1)), "it has no Conv")
	// 33156·127·255 = 1073757060 is the first product that exceeds 2^30 = 1073741824.
	check(rewritetest.Times("x", func(g *build.Graph) string { return g.Floats("w", make([]float32, 33156), 33156, 1) }), "it sums 33156 products")
	check(rewritetest.Changed(rewritetest.Times("x", rewritetest.Weights), func(p *onnxpb.ModelProto) { p.Graph.Node[1].OpType = proto.String("QLinearConv") }), "it is quantized already")
}

func TestInt8StaticRefuses(t *testing.T) {
	t.Parallel()
	check := func(m *onnx.Model, o quantization.StaticOptions, want ...string) {
		t.Helper()
		_, _, err := quantization.Static(m, o)
		_, _, probeErr := quantization.StaticSensitivity(m, o)
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
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	ranges := func(least, most float32) quantization.StaticOptions {
		return quantization.StaticOptions{Ranges: map[string]quantization.Range{"x": {Min: least, Max: most}}}
	}
	check(m, quantization.StaticOptions{}, `the range of the value "x" is missing`)
	check(m, ranges(1, -1), `the range of the value "x", from 1 to -1, is impossible`)
	check(m, ranges(nan, 1), "from NaN to 1")
	check(m, ranges(0, nan), "from 0 to NaN")
	check(m, ranges(0, inf), "from 0 to +Inf")
	check(m, quantization.StaticOptions{Bits: 4}, "weights of 4 bits", "choose 7 or 8")
	check(m, quantization.StaticOptions{Keep: []string{"nope"}}, `no nodes ["nope"]`)
	old := rewritetest.Changed(m, func(p *onnxpb.ModelProto) { p.OpsetImport[0].Version = proto.Int64(10) })
	check(old, ranges(0, 1), "it uses version 10 of ONNX's operator set", "int8_static need 13")
	g, x := graph()
	bad := g.Node("Gemm", []string{x, g.Floats("w", []float32{1, nan, 3, 4}, 4, 1)})
	check(output(g, bad), ranges(0, 1), `the node "node_Gemm_0"`, `its weight "w" holds NaN`, "element 1 of 4")
	g, x = graph()
	bad = g.Node("Gemm", []string{x, g.Floats("w", []float32{1, 2, 3, 4}, 4, 1), g.Floats("b", []float32{inf}, 1)})
	check(output(g, bad), ranges(0, 1), `its weight "b" holds +Inf`)
}

func TestInt8StaticSensitivity(t *testing.T) {
	t.Parallel()
	m := build.CNN(0)
	probe, outputs, err := quantization.StaticSensitivity(m, quantization.StaticOptions{Ranges: alike(t, m, -1, 1), Keep: []string{"node_Conv_1"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"node_Conv_0", "node_Conv_2", "node_MatMul_0"}, slices.Sorted(maps.Keys(outputs))); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	want := []string{"logits FLOAT[batch,10]", "node_Conv_0_int8_error FLOAT[1]", "node_Conv_2_int8_error FLOAT[1]", "node_MatMul_0_int8_error FLOAT[1]"}
	var got []string
	for _, v := range probe.Outputs() {
		got = append(got, v.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
}

// No model makes the conversion panic. A second conversion of its result finds nothing to convert.
func FuzzInt8Static(f *testing.F) {
	g, x := pixels()
	small := output(g, conv1(g, g.Node("Relu", []string{conv1(g, x, "w0", 1)}), "w1", 1))
	for _, m := range []*onnx.Model{build.Simple(), rewritetest.Times("x", rewritetest.Weights), gemm(), unfolded(), small, normalized()} {
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
		values, err := quantization.Activations(m)
		if err != nil {
			return
		}
		o := quantization.StaticOptions{Ranges: map[string]quantization.Range{}}
		for _, value := range values {
			o.Ranges[value] = quantization.Range{Min: -1, Max: 2}
		}
		q, _, err := quantization.Static(m, o)
		if err != nil {
			return
		}
		if _, _, err := quantization.Static(q, o); !errors.Is(err, rewrite.ErrNothing) {
			t.Errorf("converting the result gave %v", err)
		}
	})
}
