package mutation

import (
	"bytes"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
)

// sample returns a small model file.
func sample(t *testing.T) []byte {
	t.Helper()
	g := build.NewGraph("sample")
	x := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4))
	g.OutputAs("y", g.Node("Relu", []string{x}), onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4))
	data, err := proto.Marshal(g.Model().Proto())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A number always gives the same mutation, the model stays unchanged, and mutations differ.
func TestOf(t *testing.T) {
	t.Parallel()
	model := sample(t)
	before := slices.Clone(model)
	seen := map[string]bool{}
	for n := range 500 {
		a, b := Of(model, 1, n), Of(model, 1, n)
		if !bytes.Equal(a.Data, b.Data) || a.What != b.What {
			t.Fatalf("mutation %d is not always the same: %s, %s", n, a.What, b.What)
		}
		seen[string(a.Data)] = true
	}
	if !bytes.Equal(model, before) {
		t.Error("the model was changed")
	}
	if len(seen) < 250 {
		t.Errorf("%d different mutations of 500", len(seen))
	}
}
