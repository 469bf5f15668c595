package extent

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"tuner/internal/alloctest"
	"tuner/model/onnx"
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
	if _, _, err := m.measure(int64(len(data))); err != nil {
		return Constants{}, err
	}
	return m.constants(int64(len(data)))
}

// defined makes a function of domain d with inputs a and b, and output y.
func defined(name string, nodes ...*onnxpb.NodeProto) *onnxpb.FunctionProto {
	f := fn(name, nodes...)
	f.Input, f.Output = []string{"a", "b"}, []string{"y"}
	return f
}

func call(name, output string, inputs ...string) *onnxpb.NodeProto {
	n := wire(name, output, inputs...)
	n.Domain = proto.String("d")
	return n
}

func withInput(name string, nodes ...*onnxpb.NodeProto) *onnxpb.GraphProto {
	g := graph(nodes...)
	g.Input = []*onnxpb.ValueInfoProto{{Name: &name}}
	return g
}

// In these models x is an input, c a constant of 1000 elements, d one of 10, and sparse one of
// 100 that is listed as an input.
func TestConstants(t *testing.T) {
	t.Parallel()
	const bound = 1 << 20
	literal := wire("Constant", "l")
	literal.Attribute = []*onnxpb.AttributeProto{{T: &onnxpb.TensorProto{Dims: []int64{50, 2}}}}
	converted := wire("Cast", "y", "c")
	converted.Attribute = []*onnxpb.AttributeProto{{Name: proto.String("to"), I: proto.Int64(int64(onnx.Float16))}}
	for name, tc := range map[string]struct {
		nodes []*onnxpb.NodeProto
		bytes uint64
		work  float64
	}{
		"of an input":                      {[]*onnxpb.NodeProto{wire("Expand", "y", "x", "d"), wire("Add", "z", "c", "y")}, 0, 0},
		"the same elements":                {[]*onnxpb.NodeProto{wire("Neg", "y", "c")}, 8000, 2000},
		"a table":                          {[]*onnxpb.NodeProto{wire("Add", "y", "c", "d")}, 80_000, 1010 + 10_000},
		"unknown":                          {[]*onnxpb.NodeProto{wire("Expand", "y", "c", "d")}, bound, 1010 + bound},
		"of an unknown one":                {[]*onnxpb.NodeProto{wire("Range", "y", "d"), wire("Neg", "z", "y")}, 2 * bound, 10 + 3*bound},
		"joined":                           {[]*onnxpb.NodeProto{wire("Concat", "y", "c", "d")}, 8080, 2020},
		"a literal":                        {[]*onnxpb.NodeProto{literal, wire("Neg", "y", "l")}, 800, 200},
		"a shape of an input":              {[]*onnxpb.NodeProto{wire("Shape", "s", "x"), wire("ConstantOfShape", "y", "s")}, 512 + bound, 64 + 64 + bound},
		"a product":                        {[]*onnxpb.NodeProto{wire("MatMul", "y", "c", "c")}, bound, 1000 * 1024},
		"a convolution":                    {[]*onnxpb.NodeProto{wire("Conv", "y", "c", "d")}, bound, 1010 * bound},
		"two outputs":                      {[]*onnxpb.NodeProto{{OpType: proto.String("Split"), Input: []string{"c"}, Output: []string{"y", "z"}}}, 16_000, 2000},
		"used before":                      {[]*onnxpb.NodeProto{wire("Neg", "z", "y"), wire("Range", "y", "d")}, 2 * bound, 10 + 3*bound},
		"in a branch":                      {[]*onnxpb.NodeProto{loop(graph(wire("Neg", "y", "c")), "If", "z", "x")}, 8000, 2000},
		"of a branch":                      {[]*onnxpb.NodeProto{loop(graph(), "If", "z", "d"), wire("Neg", "y", "z")}, 2 * bound, 10 + 3*bound},
		"of a loop":                        {[]*onnxpb.NodeProto{loop(graph(), "Loop", "z", "d"), wire("Neg", "y", "z")}, 0, 0},
		"of a loop's input":                {[]*onnxpb.NodeProto{loop(withInput("i", wire("Neg", "y", "i")), "Loop", "z", "d")}, 0, 0},
		"a name of a loop's input":         {[]*onnxpb.NodeProto{loop(withInput("i"), "Loop", "z", "d"), wire("Neg", "i", "d"), wire("Neg", "y", "i")}, 160, 40},
		"in a loop, of a constant outside": {[]*onnxpb.NodeProto{loop(withInput("i", wire("Neg", "y", "c")), "Loop", "z", "d")}, 8000, 2000},
		"with a graph that it ignores":     {[]*onnxpb.NodeProto{loop(graph(), "Expand", "y", "c", "d")}, bound, 1010 + bound},
		"of a sparse one":                  {[]*onnxpb.NodeProto{wire("Neg", "y", "sparse")}, 800, 200},

		"a function with an operator's name": {[]*onnxpb.NodeProto{wire("Abs", "y", "c"), wire("Neg", "z", "y")}, 2 * bound, 1000 + 3*bound},
		"a convolution in a function":        {[]*onnxpb.NodeProto{call("Heavy", "y", "c", "d")}, bound, 1010 * bound},
		"a function of an input":             {[]*onnxpb.NodeProto{call("Heavy", "y", "x", "d"), wire("Neg", "z", "y")}, 0, 0},
		"a function of nothing and an input": {[]*onnxpb.NodeProto{call("Second", "y", "", "x"), wire("Neg", "z", "y")}, 0, 0},
		"of a function":                      {[]*onnxpb.NodeProto{call("Second", "y", "x", "d"), wire("Neg", "z", "y")}, 160, 40},
		"a function of a graph":              {[]*onnxpb.NodeProto{loop(graph(), "Abs", "y", "x")}, bound, bound * bound},
		"a function in itself 200 times":     {[]*onnxpb.NodeProto{call("F0", "y", "d")}, bound * 100, bound * bound * 100},

		"a reduction":                    {[]*onnxpb.NodeProto{wire("ReduceL2", "y", "c")}, 8000, 2000},
		"the sums of no elements":        {[]*onnxpb.NodeProto{wire("ReduceSum", "y", "none")}, bound, bound},
		"unlisted":                       {[]*onnxpb.NodeProto{wire("Resize", "y", "c")}, bound, passes * (1000 + bound)},
		"unlisted, of another domain":    {[]*onnxpb.NodeProto{{Domain: proto.String("e"), OpType: proto.String("Neg"), Input: []string{"c"}, Output: []string{"y"}}}, bound, 1000 * bound},
		"a Fourier transform":            {[]*onnxpb.NodeProto{wire("DFT", "y", "d")}, bound, math.Inf(1)},
		"a product of many":              {[]*onnxpb.NodeProto{wire("MatMul", "y", slices.Repeat([]string{"c"}, 1000)...)}, bound, math.Sqrt(math.MaxFloat64) * 1024},
		"of four bytes":                  {[]*onnxpb.NodeProto{wire("Neg", "y", "f"), wire("Expand", "z", "f", "d")}, 4000 + bound, 2000 + 1010 + bound},
		"converted":                      {[]*onnxpb.NodeProto{converted, wire("Neg", "z", "y")}, 2000 + 2000, 4000},
		"compared":                       {[]*onnxpb.NodeProto{wire("Equal", "y", "f", "one")}, 1000, 1001 + 1000},
		"of strings of 100 characters":   {[]*onnxpb.NodeProto{wire("Identity", "y", "texts")}, 1320, 20},
		"many strings of 100 characters": {[]*onnxpb.NodeProto{wire("Expand", "y", "texts", "d")}, bound / 32 * 132, 20 + bound},
	} {
		g := graph(tc.nodes...)
		g.Input = []*onnxpb.ValueInfoProto{{Name: proto.String("x")}, {Name: proto.String("sparse")}}
		g.Initializer = []*onnxpb.TensorProto{{Name: proto.String("c"), Dims: []int64{100, 10}}, {Name: proto.String("d"), Dims: []int64{10}},
			{Name: proto.String("none"), Dims: []int64{0, 1 << 40}}, {Name: proto.String("f"), DataType: proto.Int32(int32(onnx.Float)), Dims: []int64{1000}},
			{Name: proto.String("one"), DataType: proto.Int32(int32(onnx.Float))},
			{Name: proto.String("texts"), DataType: proto.Int32(int32(onnx.String)), Dims: []int64{10}, StringData: [][]byte{make([]byte, 100)}}}
		g.SparseInitializer = []*onnxpb.SparseTensorProto{{Dims: []int64{100}, Values: &onnxpb.TensorProto{Name: proto.String("sparse")}}}
		m := &onnxpb.ModelProto{Graph: g, Functions: []*onnxpb.FunctionProto{defined("Heavy", wire("Conv", "y", "a", "b")), defined("Second", wire("Neg", "y", "b")),
			{Name: proto.String("Abs"), Input: []string{"a"}, Output: []string{"y"}, Node: []*onnxpb.NodeProto{wire("Range", "y", "a")}}}}
		for i := range 199 {
			m.Functions = append(m.Functions, defined(fmt.Sprint("F", i), call(fmt.Sprint("F", i+1), "y", "a")))
		}
		m.Functions = append(m.Functions, defined("F199", wire("Identity", "y", "a")))
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

// Beyond a bound of nodes, and of bytes in functions that are called again and again, the rest
// counts as unknown.
func TestConstantsAreCollectedUpToABound(t *testing.T) {
	empty := protowire.AppendBytes(protowire.AppendTag(nil, graphNode, protowire.BytesType), nil)
	model := protowire.AppendBytes(protowire.AppendTag(nil, modelGraph, protowire.BytesType), bytes.Repeat(empty, 2*mostEntries))
	called := &onnxpb.ModelProto{Graph: graph(slices.Repeat([]*onnxpb.NodeProto{call("F", "y", "x")}, 100)...), Functions: []*onnxpb.FunctionProto{defined("F", wire("Neg", "y", "a"))}}
	called.Functions[0].DocString = proto.String(string(make([]byte, mostBodies/10)))
	for name, tc := range map[string]struct {
		data []byte
		want uint64
	}{"nodes": {model, mostEntries}, "calls": {encode(t, called), 91}} {
		var c Constants
		var err error
		n := alloctest.Bytes(func() { c, err = constantsOf(tc.data) })
		if err != nil || c.unknown != tc.want || n > 16<<20 {
			t.Errorf("%s: %d unknown ones, %v, %d bytes are allocated; want %d and at most 16 MiB", name, c.unknown, err, n, tc.want)
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
