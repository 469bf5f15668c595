package quantization_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/rewrite/quantization"
	"tuner/model/onnx/rewrite/rewritetest"
)

// normalized makes a model with a normalisation after a convolution. For the first channel it is x
// → 3·(x-1)/sqrt(3.75+0.25) + 5 = 1.5·x + 3.5, for the second the constant 2. The convolution has
// the weights 2 and 7 and the biases 4 and 8.
func normalized() *onnx.Model {
	g, x := pixels()
	c := g.Node("Conv", []string{x, g.Floats("w", []float32{2, 7}, 2, 1, 1, 1), g.Floats("b", []float32{4, 8}, 2)})
	row := func(name string, values ...float32) string { return g.Floats(name, values, 2) }
	n := g.Node("BatchNormalization", []string{c, row("scale", 3, 0), row("shift", 5, 2), row("mean", 1, -1), row("variance", 3.75, 3.75)},
		build.FloatAttribute("epsilon", 0.25))
	return output(g, g.Node("Conv", []string{n, g.Floats("last", []float32{1, 1}, 1, 2, 1, 1)}))
}

// The first channel's weight becomes 1.5·2 = 3 and its bias 1.5·4+3.5 = 9.5.
func TestInt8StaticFoldsNormalizations(t *testing.T) {
	t.Parallel()
	m := normalized()
	q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: alike(t, m, -1, 1), Keep: []string{"node_Conv_0"}})
	if diff := cmp.Diff([]float32{3, 0}, rewritetest.Floats(t, q, "w_folded")); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float32{9.5, 2}, rewritetest.Floats(t, q, "w_folded_bias")); diff != "" {
		t.Errorf("biases (-want +got):\n%s", diff)
	}
	if got := rewritetest.Wiring(q)[0]; got != "BatchNormalization_0 = Conv(x, w_folded, w_folded_bias)" {
		t.Errorf("the folded convolution is %q", got)
	}
}

// Normalisations stay if the convolution's own result has other users, or if their parameters vary.
func TestInt8StaticLeavesNormalizations(t *testing.T) {
	t.Parallel()
	one := []float32{1}
	normalize := func(g *build.Graph, x, scale string) string {
		return g.Node("BatchNormalization", []string{x, scale, g.Floats("shift", one, 1), g.Floats("mean", one, 1), g.Floats("variance", one, 1)})
	}
	check := func(what string, m *onnx.Model) {
		t.Helper()
		q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: alike(t, m, -1, 1)})
		if !slices.Contains(rewritetest.Operators(q), "BatchNormalization") {
			t.Errorf("%s: %v", what, rewritetest.Operators(q))
		}
	}
	g, x := pixels()
	c := conv1(g, x, "w", 1)
	check("two consumers", output(g, g.Node("Add", []string{c, normalize(g, c, g.Floats("scale", one, 1))})))
	g, x = pixels()
	check("computed scale", output(g, normalize(g, conv1(g, x, "w", 1), g.Input("scale", onnx.Float, onnx.Fixed(1)))))
	g, x = pixels()
	check("no convolution", output(g, conv1(g, normalize(g, x, g.Floats("scale", one, 1)), "w", 1)))
}

// Nodes between layers compute in integers. Sums and means have their own ranges, maxima and
// reshapes those of their inputs. Nodes after the last layer or before the first one do not, and
// need no range.
func TestInt8StaticPlan(t *testing.T) {
	t.Parallel()
	g, x := pixels()
	first := conv1(g, g.Node("Sigmoid", []string{x}), "w0", 1)
	sum := g.Node("Relu", []string{g.Node("Add", []string{first, conv1(g, first, "w1", 1)})})
	pooled := g.Node("MaxPool", []string{sum}, build.IntsAttribute("kernel_shape", 2, 2))
	mean := g.Node("GlobalAveragePool", []string{pooled})
	flat := g.Node("Flatten", []string{mean})
	last := g.Node("MatMul", []string{flat, g.Floats("w2", []float32{1, 2}, 1, 2)})
	m := output(g, g.Node("Sigmoid", []string{last}))
	// The pool has the scale of the sum, the flat value that of the mean.
	want := []string{"Sigmoid_0", first, "Conv_1", sum, mean}
	if diff := cmp.Diff(want, activations(t, m)); diff != "" {
		t.Errorf("activations (-want +got):\n%s", diff)
	}
	quantized := func(keep ...string) []string {
		t.Helper()
		q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: alike(t, m, -1, 1), Keep: keep})
		var values []string
		for _, node := range q.Nodes() {
			if node.GetOpType() == "QuantizeLinear" {
				values = append(values, strings.TrimSuffix(node.GetOutput()[0], "_QuantizeLinear_output")+" "+node.GetInput()[1])
			}
		}
		return values
	}
	all := []string{"Sigmoid_0 Sigmoid_0_scale", first + " Conv_0_scale", "Conv_1 Conv_1_scale", sum + " Relu_0_scale",
		pooled + " Relu_0_scale", mean + " GlobalAveragePool_0_scale", flat + " GlobalAveragePool_0_scale"}
	if diff := cmp.Diff(all, quantized()); diff != "" {
		t.Errorf("quantized values (-want +got):\n%s", diff)
	}
	// Without the last layer, nothing needs integers after the second convolution. Its own result
	// must still be an integer.
	if diff := cmp.Diff(all[:3], quantized("node_MatMul_0")); diff != "" {
		t.Errorf("quantized values without the last layer (-want +got):\n%s", diff)
	}
	// Without the first one, the second uses its result. The sum uses it too, and comes after the
	// second.
	if diff := cmp.Diff(all[1:], quantized("node_Conv_0")); diff != "" {
		t.Errorf("quantized values without the first layer (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{flat + " GlobalAveragePool_0_scale"}, quantized("node_Conv_0", "node_Conv_1")); diff != "" {
		t.Errorf("quantized values of the last layer alone (-want +got):\n%s", diff)
	}
}

// A limiter is removed only if a zero point replaces it: directly after a layer whose result has no
// other users.
func TestInt8StaticLimiters(t *testing.T) {
	t.Parallel()
	check := func(what string, want bool, limited func(g *build.Graph, x string) string) {
		t.Helper()
		g, x := pixels()
		m := output(g, conv1(g, limited(g, conv1(g, x, "w0", 1)), "w1", 1))
		q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: alike(t, m, -51, 204)})
		ops := rewritetest.Operators(q)
		if got := !slices.Contains(ops, "Relu") && !slices.Contains(ops, "Clip"); got != want {
			t.Errorf("%s: %v", what, ops)
		}
	}
	check("Relu", true, func(g *build.Graph, x string) string { return g.Node("Relu", []string{x}) })
	clip := func(bounds ...float32) func(g *build.Graph, x string) string {
		return func(g *build.Graph, x string) string {
			in := []string{x}
			for i, b := range bounds {
				in = append(in, g.Floats("bound"+string(rune('0'+i)), []float32{b}))
			}
			return g.Node("Clip", in)
		}
	}
	check("relu6", true, clip(0, 6))
	check("from 0 on", true, clip(0))
	check("from -1 to 1", false, clip(-1, 1))
	check("nothing", false, clip())
	check("Relu of a value that another node uses", false, func(g *build.Graph, x string) string {
		return g.Node("Add", []string{x, g.Node("Relu", []string{x})})
	})
	// relu6 limits a range that is too wide: 0 to 6 in 255 steps.
	g, x := pixels()
	m := output(g, conv1(g, clip(0, 6)(g, conv1(g, x, "w0", 1)), "w1", 1))
	q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: alike(t, m, -51, 204)})
	if scales, zeros := constants(t, q); scales["Clip_0_scale"] != 6./255 || zeros["Clip_0_zero_point"] != 0 {
		t.Errorf("scale %v, zero point %v", scales["Clip_0_scale"], zeros["Clip_0_zero_point"])
	}
}

// A quantized output of the graph keeps its name and type.
func TestInt8StaticKeepsOutputs(t *testing.T) {
	t.Parallel()
	g, x := pixels()
	c := conv1(g, x, "w", 1)
	g.Output(c, onnx.Float, onnx.Symbol("batch"), onnx.Fixed(1), onnx.Fixed(2), onnx.Fixed(2))
	m := g.Model()
	q, _ := int8Static(t, m, quantization.StaticOptions{Ranges: alike(t, m, -1, 1)})
	if diff := cmp.Diff(rewritetest.Interfaces(m), rewritetest.Interfaces(q)); diff != "" {
		t.Errorf("inputs and outputs (-want +got):\n%s", diff)
	}
	lines := rewritetest.Wiring(q)
	if got := lines[len(lines)-1]; got != c+" = DequantizeLinear("+c+"_QuantizeLinear_output, "+c+"_scale, "+c+"_zero_point)" {
		t.Errorf("the last node is %q", got)
	}
}
