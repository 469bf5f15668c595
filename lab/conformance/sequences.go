package conformance

import (
	"tuner/model/onnx"
	"tuner/model/onnx/build"
)

// observer makes a model that returns what the server tells it about a sequence. flags are the
// controls START, END and READY as INT32[batch, 3]. who is the control ID. total is the sum of x so
// far. The controls are of INT32 and INT64, FLOAT and UINT32, BOOL and INT32, or INT32 and STRING.
func observer(name string) *onnx.Model {
	g := build.NewGraph(name)
	flag, id := onnx.Int32, onnx.Int64
	switch name {
	case "observer_float":
		flag, id = onnx.Float, onnx.Uint32
	case "observer_bool":
		flag, id = onnx.Bool, onnx.Int32
	case "observer_text":
		id = onnx.String
	}
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Fixed(1)}
	var flags []string
	for _, control := range []string{"START", "END", "READY"} {
		flags = append(flags, g.Node("Cast", []string{g.Input(control, flag, shape...)}, build.IntAttribute("to", int64(onnx.Int32))))
	}
	who := g.Input("ID", id, shape...)
	x, sum := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Symbol("width")), g.Input("sum", onnx.Float, shape...)
	total := g.Node("Add", []string{sum, g.Node("ReduceSum", []string{x, g.Int64s("axes", []int64{1}, 1)})})
	g.OutputAs("flags", g.Node("Concat", flags, build.IntAttribute("axis", 1)), onnx.Int32, onnx.Symbol("batch"), onnx.Fixed(3))
	g.OutputAs("who", who, id, shape...)
	g.OutputAs("total", total, onnx.Float, shape...)
	g.OutputAs("next_sum", total, onnx.Float, shape...)
	return g.Model()
}

// Models of tritonclient's examples for sequences, all of INT32[batch, 1].

// plusStart makes OUTPUT = INPUT + START, or 0 where READY is 0.
func plusStart() *onnx.Model {
	g := build.NewGraph("plus_start")
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Fixed(1)}
	input, start, ready := g.Input("INPUT", onnx.Int32, shape...), g.Input("START", onnx.Int32, shape...), g.Input("READY", onnx.Int32, shape...)
	g.OutputAs("OUTPUT", g.Node("Mul", []string{ready, g.Node("Add", []string{input, start})}), onnx.Int32, shape...)
	return g.Model()
}

// dyna makes OUTPUT = INPUT + START, and at the end of a sequence the sequence's number CORRID
// besides.
func dyna() *onnx.Model {
	g := build.NewGraph("dyna")
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Fixed(1)}
	input, start := g.Input("INPUT", onnx.Int32, shape...), g.Input("START", onnx.Int32, shape...)
	g.OutputAs("OUTPUT", g.Node("Add", []string{g.Node("Add", []string{input, start}), numberAtEnd(g, onnx.Int64, shape)}), onnx.Int32, shape...)
	return g.Model()
}

// dynaText makes OUTPUT = SUM + INPUT, and at the end of a sequence the number in the text CORRID
// besides.
func dynaText() *onnx.Model {
	g := build.NewGraph("dyna_text")
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Fixed(1)}
	total := g.Node("Add", []string{g.Input("SUM", onnx.Int32, shape...), g.Input("INPUT", onnx.Int32, shape...)})
	g.OutputAs("OUTPUT", g.Node("Add", []string{total, numberAtEnd(g, onnx.String, shape)}), onnx.Int32, shape...)
	g.OutputAs("NEXT_SUM", total, onnx.Int32, shape...)
	return g.Model()
}

// numberAtEnd is CORRID where END is 1, else 0.
func numberAtEnd(g *build.Graph, id onnx.DataType, shape []onnx.Dim) string {
	number := g.Node("Cast", []string{g.Input("CORRID", id, shape...)}, build.IntAttribute("to", int64(onnx.Int32)))
	return g.Node("Mul", []string{g.Input("END", onnx.Int32, shape...), number})
}
