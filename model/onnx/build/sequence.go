package build

import "tuner/model/onnx"

// Accumulator makes a model that adds up the requests of a sequence: OUTPUT = SUM + INPUT, all
// INT32[batch, 1]. NEXT_SUM is OUTPUT, or SUM where READY is 0. A server passes it to the sequence's
// next request as SUM, and says by READY INT32[batch, 1] which rows have a request.
func Accumulator() *onnx.Model {
	g := NewGraph("accumulator")
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Fixed(1)}
	input, ready, sum := g.Input("INPUT", onnx.Int32, shape...), g.Input("READY", onnx.Int32, shape...), g.Input("SUM", onnx.Int32, shape...)
	g.OutputAs("OUTPUT", g.Node("Add", in(sum, input)), onnx.Int32, shape...)
	g.OutputAs("NEXT_SUM", g.Node("Add", in(sum, g.Node("Mul", in(input, ready)))), onnx.Int32, shape...)
	return g.Model()
}

// StreamingDetector makes a recurrent model of the kind that detects voices in a stream: chunk
// FLOAT[batch, 16], state FLOAT[batch, 2, 8] → probability FLOAT[batch, 1], next_state FLOAT[batch,
// 2, 8]. The probability depends on all chunks of the stream so far. If batches is false, there is no
// batch dimension.
func StreamingDetector(batches bool) *onnx.Model {
	const samples, rows, units = 16, 2, 8
	g := NewGraph("streaming_detector")
	shape := func(dims ...int64) []onnx.Dim {
		out := []onnx.Dim{onnx.Symbol("batch")}
		if !batches {
			out = nil
		}
		for _, d := range dims {
			out = append(out, onnx.Fixed(d))
		}
		return out
	}
	chunk, state := g.Input("chunk", onnx.Float, shape(samples)...), g.Input("state", onnx.Float, shape(rows, units)...)
	flatten := func(x string, name string, n int64) string {
		return g.Node("Reshape", in(x, g.Int64s(name, []int64{-1, n}, 2)))
	}
	mixed := g.Node("Add", in(
		dense(g, "input", flatten(chunk, "chunk_shape", samples), samples, rows*units),
		dense(g, "memory", flatten(state, "state_shape", rows*units), rows*units, rows*units)))
	next := g.Node("Tanh", in(mixed))
	probability := g.Node("Sigmoid", in(dense(g, "head", next, rows*units, 1)))
	lead := []int64{-1}
	if !batches {
		lead = nil
	}
	as := func(x, name string, dims ...int64) string {
		dims = append(append([]int64(nil), lead...), dims...)
		return g.Node("Reshape", in(x, g.Int64s(name, dims, int64(len(dims)))))
	}
	g.OutputAs("probability", as(probability, "probability_shape", 1), onnx.Float, shape(1)...)
	g.OutputAs("next_state", as(next, "next_shape", rows, units), onnx.Float, shape(rows, units)...)
	return g.Model()
}
