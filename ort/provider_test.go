package ort

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOpenVINO runs a model on OpenVINO and on the CPU provider of the same build: the answers must be the same. `make test`
// runs it with the openvino flavour.
func TestOpenVINO(t *testing.T) {
	if !slices.Contains(testRuntime(t).Providers(), "openvino") {
		t.Skip("this ONNX Runtime build has no OpenVINO: 'make test' runs this test with the flavour that has it")
	}
	answer := func(provider string) []byte {
		s := testSession(t, "add_sub", SessionOptions{Providers: []Provider{{Name: provider}}})
		var inputs []*Tensor
		for range s.Inputs() {
			inputs = append(inputs, testTensor(t, Float32, []int64{2, 4}, floats(1, 2, 3, 4, 5, 6, 7, 8)))
		}
		return slices.Clone(run(t, s, inputs, s.Outputs()[0].Name)[0].Bytes())
	}
	if diff := cmp.Diff(answer("cpu"), answer("openvino")); diff != "" {
		t.Errorf("OpenVINO answers differently from the CPU provider (-cpu +openvino):\n%s", diff)
	}
}
