package extent

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/internal/alloctest"
	"tuner/model/onnx/onnxpb"
)

// wire makes a node with one output.
func wire(op, output string, inputs ...string) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{OpType: &op, Input: inputs, Output: []string{output}}
}

func loop(body *onnxpb.GraphProto, op, output string, inputs ...string) *onnxpb.NodeProto {
	n := wire(op, output, inputs...)
	n.Attribute = []*onnxpb.AttributeProto{{G: body}}
	return n
}

func constantsOf(data []byte) (Constants, error) {
	m := model{scanner: newScanner(bytes.NewReader(data)), functions: map[function]*body{}}
	alone, whole, err := m.measure(int64(len(data)))
	if err != nil {
		return Constants{}, err
	}
	return m.constants(int64(len(data)), alone, whole)
}

// In these models x is an input, c a constant of 1000 elements, and d one of 10.
func TestConstants(t *testing.T) {
	t.Parallel()
	const bound = 1 << 20
	literal := wire("Constant", "l")
	literal.Attribute = []*onnxpb.AttributeProto{{T: &onnxpb.TensorProto{Dims: []int64{50, 2}}}}
	for name, tc := range map[string]struct {
		nodes []*onnxpb.NodeProto
		bytes uint64
		work  float64
	}{
		"of an input":         {[]*onnxpb.NodeProto{wire("Expand", "y", "x", "d"), wire("Add", "z", "c", "y")}, 0, 0},
		"the same elements":   {[]*onnxpb.NodeProto{wire("Neg", "y", "c")}, 8000, 2000},
		"a table":             {[]*onnxpb.NodeProto{wire("Add", "y", "c", "d")}, 80_000, 1010 + 10_000},
		"unknown":             {[]*onnxpb.NodeProto{wire("Expand", "y", "c", "d")}, bound, 1010 + bound},
		"of an unknown one":   {[]*onnxpb.NodeProto{wire("Range", "y", "d"), wire("Neg", "z", "y")}, 2 * bound, 10 + 3*bound},
		"joined":              {[]*onnxpb.NodeProto{wire("Concat", "y", "c", "d")}, 8080, 2020},
		"a literal":           {[]*onnxpb.NodeProto{literal, wire("Neg", "y", "l")}, 800, 200},
		"a shape of an input": {[]*onnxpb.NodeProto{wire("Shape", "s", "x"), wire("ConstantOfShape", "y", "s")}, 512 + bound, 64 + 64 + bound},
		"a product":           {[]*onnxpb.NodeProto{wire("MatMul", "y", "c", "c")}, bound, 1000 * 1024},
		"a convolution":       {[]*onnxpb.NodeProto{wire("Conv", "y", "c", "d")}, bound, 1010 * bound},
		"two outputs":         {[]*onnxpb.NodeProto{{OpType: proto.String("Split"), Input: []string{"c"}, Output: []string{"y", "z"}}}, 16_000, 2000},
		"used before":         {[]*onnxpb.NodeProto{wire("Neg", "z", "y"), wire("Range", "y", "d")}, 2 * bound, 10 + 3*bound},
		"in a branch":         {[]*onnxpb.NodeProto{loop(graph(wire("Neg", "y", "c")), "If", "z", "x")}, 8000, 2000},
		"of a branch":         {[]*onnxpb.NodeProto{loop(graph(), "If", "z", "d"), wire("Neg", "y", "z")}, 2 * bound, 10 + 3*bound},
		"of a loop":           {[]*onnxpb.NodeProto{loop(graph(), "Loop", "z", "d"), wire("Neg", "y", "z")}, 0, 0},
		"of a loop's input": {[]*onnxpb.NodeProto{loop(&onnxpb.GraphProto{Input: []*onnxpb.ValueInfoProto{{Name: proto.String("i")}},
			Node: []*onnxpb.NodeProto{wire("Neg", "y", "i")}}, "Loop", "z", "d")}, 0, 0},
		"a function with an operator's name": {[]*onnxpb.NodeProto{wire("Abs", "y", "d"), wire("Neg", "z", "y")}, 2*bound + bound, 10*bound + 2*bound + bound},
		"functions":                          {[]*onnxpb.NodeProto{node("d", "F")}, 2 * bound, 2 * bound},
	} {
		g := graph(tc.nodes...)
		g.Input = []*onnxpb.ValueInfoProto{{Name: proto.String("x")}}
		g.Initializer = []*onnxpb.TensorProto{{Name: proto.String("c"), Dims: []int64{100, 10}}, {Name: proto.String("d"), Dims: []int64{10}}}
		m := &onnxpb.ModelProto{Graph: g, Functions: []*onnxpb.FunctionProto{fn("F", node("", "Neg"), node("", "Neg")),
			{Name: proto.String("Abs"), Node: []*onnxpb.NodeProto{node("", "Neg")}}}}
		data := encode(t, m)
		c, err := constantsOf(data)
		if err != nil {
			t.Fatal(err)
		}
		if got, work := c.Bytes(bound), c.Work(bound); got != tc.bytes || work != tc.work {
			t.Errorf("%s: %d bytes and work %.0f, want %d and %.0f", name, got, work, tc.bytes, tc.work)
		}
	}
}

// Every file is read with bounded memory, and a larger bound never gives less.
func FuzzConstants(f *testing.F) {
	f.Add(encode(f, doubling(4)))
	f.Add(encode(f, &onnxpb.ModelProto{Graph: graph(wire("Expand", "y", "c", "d"), wire("MatMul", "z", "y", "y"), loop(graph(wire("Neg", "a", "y")), "If", "b", "y"))}))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer alloctest.Bound(t, len(data))()
		c, err := constantsOf(data)
		if err != nil {
			return
		}
		for _, bound := range []uint64{0, 1, 1 << 20, 1 << 40} {
			if c.Bytes(bound) > c.Bytes(2*bound) || c.Work(bound) > c.Work(2*bound) {
				t.Errorf("a bound of %d gives more than one of %d", bound, 2*bound)
			}
		}
	})
}
