package build

import (
	"fmt"

	"tuner/model/onnx"
)

// MiniLM makes the sentence encoder all-MiniLM-L6-v2 (6 layers, hidden 384, 12 heads) from its
// safetensors file. The inputs input_ids, attention_mask, token_type_ids are INT64[batch, sequence]
// with at most 512 tokens. The output embedding is FLOAT[batch, 384]: the mean of the token vectors
// under the mask, scaled to length 1.
func MiniLM(safetensorsFile []byte) (*onnx.Model, error) {
	stored, err := parseSafetensors(safetensorsFile)
	if err != nil {
		return nil, err
	}
	e := &encoder{
		Graph: NewGraph("all-MiniLM-L6-v2"),
		bert: bert{layers: 6, heads: 12, hidden: 384, intermediate: 1536, vocabulary: 30522, positions: 512, types: 2,
			epsilon: 1e-12},
		weights: stored.floats,
	}
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Symbol("sequence")}
	inputs := bertInputs{
		ids:   e.Input("input_ids", onnx.Int64, shape...),
		mask:  e.Input("attention_mask", onnx.Int64, shape...),
		types: e.Input("token_type_ids", onnx.Int64, shape...),
	}
	tokens, err := e.build(inputs)
	if err != nil {
		return nil, fmt.Errorf("cannot build MiniLM: %w", err)
	}
	embedding := normalise(e.Graph, meanPool(e.Graph, tokens, inputs.mask))
	e.OutputAs("embedding", embedding, onnx.Float, onnx.Symbol("batch"), onnx.Fixed(e.hidden))
	return e.Model(), nil
}

// meanPool averages the token vectors whose mask is 1. A row without any such vector gives zeros,
// not NaN.
func meanPool(g *Graph, tokens, mask string) string {
	weight := g.Node("Cast", in(g.Node("Unsqueeze", in(mask, g.Int64s("axis_last", []int64{-1}, 1)))),
		IntAttribute("to", int64(onnx.Float)))
	axis := g.Int64s("axis_sequence", []int64{1}, 1)
	sum := g.Node("ReduceSum", in(g.Node("Mul", in(tokens, weight)), axis), IntAttribute("keepdims", 0))
	count := g.Node("ReduceSum", in(weight, axis), IntAttribute("keepdims", 0))
	return g.Node("Div", in(sum, g.Node("Max", in(count, g.Floats("pool_floor", []float32{1e-9})))))
}

// normalise scales each row to length 1.
func normalise(g *Graph, rows string) string {
	length := g.Node("ReduceL2", in(rows), IntsAttribute("axes", -1), IntAttribute("keepdims", 1))
	return g.Node("Div", in(rows, g.Node("Max", in(length, g.Floats("norm_floor", []float32{1e-12})))))
}
