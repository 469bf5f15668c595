package rewrite_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/rewrite/rewritetest"
)

func clean(t *testing.T, m *onnx.Model) *onnx.Model {
	t.Helper()
	c, err := rewrite.Clean(m)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func nodeNames(m *onnx.Model) []string {
	var list []string
	for _, node := range m.Nodes() {
		list = append(list, node.GetName())
	}
	return list
}

// constantModel adds a constant, given by the attribute, to its input.
func constantModel(a *onnxpb.AttributeProto) *onnx.Model {
	g := build.NewGraph("constant")
	x := g.Input("x", onnx.Float, onnx.Symbol("n"))
	g.OutputAs("y", g.Node("Add", []string{x, g.Node("Constant", nil, a)}), onnx.Float, onnx.Symbol("n"))
	return g.Model()
}

func TestCleanLiftsConstants(t *testing.T) {
	t.Parallel()
	check := func(a *onnxpb.AttributeProto, wantType onnx.DataType, wantDims []int64, wantRaw []byte) {
		t.Helper()
		m := clean(t, constantModel(a))
		if diff := cmp.Diff([]string{"Add", "Identity"}, rewritetest.Operators(m)); diff != "" {
			t.Errorf("%s: nodes (-want +got):\n%s", a.GetName(), diff)
		}
		c := m.Initializer("Constant_0")
		if c == nil {
			t.Fatalf("%s: there is no initializer", a.GetName())
		}
		raw, err := m.Data(c)
		if err != nil {
			t.Fatal(err)
		}
		if onnx.DataType(c.GetDataType()) != wantType || !cmp.Equal(wantDims, c.GetDims()) || !cmp.Equal(wantRaw, raw) {
			t.Errorf("%s: it became %v %v % x", a.GetName(), onnx.DataType(c.GetDataType()), c.GetDims(), raw)
		}
	}
	one, two := []byte{0, 0, 0x80, 0x3f}, []byte{0, 0, 0, 0x40} // 1 and 2 as float32
	check(rewritetest.Attribute("value", &onnxpb.AttributeProto{T: &onnxpb.TensorProto{
		DataType: proto.Int32(int32(onnx.Float)), Dims: []int64{2}, FloatData: []float32{1, 2},
	}}), onnx.Float, []int64{2}, append(one, two...))
	check(rewritetest.Attribute("value_float", &onnxpb.AttributeProto{F: proto.Float32(2)}), onnx.Float, nil, two)
	check(rewritetest.Attribute("value_floats", &onnxpb.AttributeProto{Floats: []float32{2}}), onnx.Float, []int64{1}, two)
	check(rewritetest.Attribute("value_int", &onnxpb.AttributeProto{I: proto.Int64(258)}), onnx.Int64, nil, []byte{2, 1, 0, 0, 0, 0, 0, 0})
	check(rewritetest.Attribute("value_ints", &onnxpb.AttributeProto{Ints: []int64{3}}), onnx.Int64, []int64{1}, []byte{3, 0, 0, 0, 0, 0, 0, 0})
}

func TestCleanLiftsStrings(t *testing.T) {
	t.Parallel()
	check := func(a *onnxpb.AttributeProto, dims []int64, want ...string) {
		t.Helper()
		c := clean(t, constantModel(a)).Initializer("Constant_0")
		var got []string
		for _, s := range c.GetStringData() {
			got = append(got, string(s))
		}
		if !cmp.Equal(want, got) || !cmp.Equal(dims, c.GetDims()) || onnx.DataType(c.GetDataType()) != onnx.String {
			t.Errorf("%s became %v", a.GetName(), c)
		}
	}
	check(rewritetest.Attribute("value_string", &onnxpb.AttributeProto{S: []byte("a")}), nil, "a")
	check(rewritetest.Attribute("value_strings", &onnxpb.AttributeProto{Strings: [][]byte{[]byte("a"), []byte("b")}}), []int64{2}, "a", "b")
}

func TestCleanLeavesConstants(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("output")
	x := g.Input("x", onnx.Float)
	g.OutputAs("y", x, onnx.Float)
	g.Output(g.Node("Constant", nil, rewritetest.Attribute("value_int", &onnxpb.AttributeProto{I: proto.Int64(1)})), onnx.Int64)
	if diff := cmp.Diff([]string{"Identity", "Constant"}, rewritetest.Operators(clean(t, g.Model()))); diff != "" {
		t.Errorf("a constant that is an output (-want +got):\n%s", diff)
	}
	m := clean(t, constantModel(rewritetest.Attribute("sparse_value", &onnxpb.AttributeProto{SparseTensor: &onnxpb.SparseTensorProto{
		Values:  &onnxpb.TensorProto{DataType: proto.Int32(int32(onnx.Float)), Dims: []int64{1}, FloatData: []float32{1}},
		Indices: &onnxpb.TensorProto{DataType: proto.Int32(int32(onnx.Int64)), Dims: []int64{1}, Int64Data: []int64{0}},
		Dims:    []int64{1},
	}})))
	if diff := cmp.Diff([]string{"Constant", "Add", "Identity"}, rewritetest.Operators(m)); diff != "" {
		t.Errorf("a sparse constant (-want +got):\n%s", diff)
	}
}

func TestCleanNamesNodes(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("names")
	x := g.Input("x", onnx.Float)
	for range 4 {
		x = g.Node("Relu", []string{x}) // Relu_0 … Relu_3
	}
	g.Output(x, onnx.Float)
	m := rewritetest.Changed(g.Model(), func(p *onnxpb.ModelProto) {
		for i, name := range []string{"same", "", "same", "Relu_Relu_1"} {
			p.Graph.Node[i].Name = proto.String(name)
		}
	})
	// The second node has no name, and another node already has the name that would be made of its
	// operator and output.
	if diff := cmp.Diff([]string{"same", "Relu_Relu_1_2", "same_2", "Relu_Relu_1"}, nodeNames(clean(t, m))); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestCleanSweeps(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("dead")
	x := g.Input("x", onnx.Float)
	unused := g.Node("Add", []string{x, g.Floats("unused", []float32{1})})
	g.Node("Relu", []string{unused})
	g.OutputAs("y", g.Node("Mul", []string{x, g.Floats("used", []float32{2})}), onnx.Float)
	m := rewritetest.Changed(g.Model(), func(p *onnxpb.ModelProto) {
		for _, name := range []string{unused, "Mul_0"} {
			p.Graph.ValueInfo = append(p.Graph.ValueInfo, &onnxpb.ValueInfoProto{Name: proto.String(name)})
		}
	})
	got := clean(t, m)
	if diff := cmp.Diff([]string{"Mul", "Identity"}, rewritetest.Operators(got)); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if len(got.Initializers()) != 1 || got.Initializer("used") == nil {
		t.Errorf("the initializers are %v", got.Initializers())
	}
	if info := got.Graph().GetValueInfo(); len(info) != 1 || info[0].GetName() != "Mul_0" {
		t.Errorf("the described values are %v", info)
	}
}

// A loop's body uses a value of the outer graph that nothing else needs.
func TestCleanKeepsWhatSubgraphsUse(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("captured")
	x := g.Input("x", onnx.Float)
	captured := g.Node("Relu", []string{x})
	body := g.Subgraph("body")
	for _, name := range []string{"iteration", "go_on"} {
		body.Input(name, map[string]onnx.DataType{"iteration": onnx.Int64, "go_on": onnx.Bool}[name])
	}
	body.OutputAs("go_on_next", "go_on", onnx.Bool)
	body.OutputAs("sum", captured, onnx.Float)
	sums := g.Node("Loop", []string{g.Int64s("iterations", []int64{2}), g.True("forever")}, build.GraphAttribute("body", body))
	g.OutputAs("y", sums, onnx.Float)
	if diff := cmp.Diff([]string{"Relu", "Loop", "Identity"}, rewritetest.Operators(clean(t, g.Model()))); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

func TestCleanDropsDefaults(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("defaults")
	x := g.Input("x", onnx.Float)
	g.Input("w", onnx.Float)
	g.OutputAs("y", g.Node("Add", []string{x, g.Floats("w", []float32{1})}), onnx.Float)
	for version, want := range map[int64]int64{3: 4, 8: 8} {
		m := clean(t, rewritetest.Changed(g.Model(), func(p *onnxpb.ModelProto) { p.IrVersion = proto.Int64(version) }))
		if in := m.Graph().GetInput(); len(in) != 1 || in[0].GetName() != "x" {
			t.Errorf("the inputs are %v", in)
		}
		if got := m.Proto().GetIrVersion(); got != want {
			t.Errorf("version %d became %d, want %d", version, got, want)
		}
	}
}

func TestCleanTwiceIsOnce(t *testing.T) {
	t.Parallel()
	for name, m := range rewritetest.Samples() {
		before := rewritetest.Digest(t, m)
		once := clean(t, m)
		if rewritetest.Digest(t, clean(t, once)) != rewritetest.Digest(t, once) {
			t.Errorf("%s: cleaning a clean model changed it", name)
		}
		if rewritetest.Digest(t, m) != before {
			t.Errorf("%s: the source was changed", name)
		}
	}
}
