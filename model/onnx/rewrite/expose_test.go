package rewrite_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/rewrite/rewritetest"
)

func TestExpose(t *testing.T) {
	t.Parallel()
	m := build.CNN(0)
	exposed, err := rewrite.Expose(m, []string{"input", "Conv_0", "logits", "Conv_0", "Flatten_0"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range exposed.Outputs() {
		got = append(got, v.String())
	}
	// The stride halves the 32 pixels. Inputs and existing outputs are not added.
	if diff := cmp.Diff([]string{"logits FLOAT[batch,10]", "Conv_0 FLOAT[batch,16,16,16]", "Flatten_0 FLOAT[batch,32]"}, got); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	if len(m.Outputs()) != 1 {
		t.Error("the source was changed")
	}
	_, err = rewrite.Expose(m, []string{"nope", "conv0.weight"})
	if err == nil || !strings.Contains(err.Error(), `"nope"`) || !strings.Contains(err.Error(), `"conv0.weight"`) {
		t.Errorf("values that are not computed: %v", err)
	}
	unknown := rewritetest.Changed(rewritetest.Times("x", rewritetest.Weights), func(p *onnxpb.ModelProto) {
		p.Graph.Node[0].OpType, p.Graph.Node[0].Domain = proto.String("Mystery"), proto.String("example.com")
	})
	if _, err = rewrite.Expose(unknown, []string{"MatMul_0"}); err == nil || !strings.Contains(err.Error(), `"MatMul_0", output of a Mystery`) {
		t.Errorf("a value of unknown type: %v", err)
	}
}
