package onnxruntime_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/api"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
)

// y = x * scale, where scale is 3 unless a request replaces it. A request's scale is its own: the
// next one without it has 3 again.
func TestRequestsReplaceConstants(t *testing.T) {
	g := build.NewGraph("replaceable")
	x, scale := g.Input("x", onnx.Float, onnx.Fixed(1)), g.Input("scale", onnx.Float, onnx.Fixed(1))
	g.Floats(scale, []float32{3}, 1)
	g.OutputAs("y", g.Node("Mul", []string{x, scale}), onnx.Float, onnx.Fixed(1))
	s := serve(t, g.Model(), `input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }, { name: "scale" data_type: TYPE_FP32 dims: [ 1 ] optional: true } ]
		output { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } instance_group { count: 1 kind: KIND_CPU }`)
	for _, scale := range []float32{0, 5, 7, 0, 5} {
		inputs := []api.Tensor{scalar("x", 2)}
		want := float32(2 * 3)
		if scale != 0 {
			inputs, want = append(inputs, scalar("scale", scale)), 2*scale
		}
		r, err := infer(t.Context(), s.grpc, api.InferRequest{Model: s.model, Inputs: inputs})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(scalar("y", want), r["y"]); d != "" {
			t.Errorf("scale %v: %s", scale, d)
		}
	}
}

// scalar is a tensor of one element.
func scalar(name string, v float32) api.Tensor {
	b := math.Float32bits(v)
	return api.Tensor{Name: name, Datatype: "FP32", Shape: []int64{1}, Data: []byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)}}
}
