package build

import "tuner/model/onnx"

// LSTM makes a classifier of series with a recurrent layer: series FLOAT[batch, sequence, 32] →
// logits FLOAT[batch, 10]. The logits come from the last state of 128 hidden units.
func LSTM() *onnx.Model {
	const features, hidden, classes = 32, 128, 10
	const gates = 4 * hidden // input, output, forget, cell
	g := NewGraph("lstm")
	x := g.Input("series", onnx.Float, onnx.Symbol("batch"), onnx.Symbol("sequence"), onnx.Fixed(features))
	steps := g.Node("Transpose", in(x), IntsAttribute("perm", 1, 0, 2))
	w := g.Floats("lstm.input_weight", random("lstm.input_weight", 1, gates, features), 1, gates, features)
	r := g.Floats("lstm.state_weight", random("lstm.state_weight", 1, gates, hidden), 1, gates, hidden)
	b := g.Floats("lstm.bias", normal("lstm.bias", 0, 0.1, 1, 2*gates), 1, 2*gates)
	states := g.Nodes("LSTM", 3, in(steps, w, r, b), IntAttribute("hidden_size", hidden))
	last := g.Node("Squeeze", in(states[1], g.Int64s("axis_direction", []int64{0}, 1)))
	g.OutputAs("logits", dense(g, "classifier", last, hidden, classes), onnx.Float, onnx.Symbol("batch"), onnx.Fixed(classes))
	return g.Model()
}
