package precision

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
)

// Mistakes that are visible in the file are reported before anything runs.
func TestSourceErrors(t *testing.T) {
	t.Parallel()
	identity := func() *onnxpb.ModelProto {
		return proto.Clone(build.Identity(onnx.Float).Proto()).(*onnxpb.ModelProto)
	}
	custom := identity()
	custom.Graph.Node[0].Domain = proto.String("my.ops")
	custom.Graph.Node[0].OpType = proto.String("Sharpen")

	inside := proto.Clone(build.ConstantTime(1).Proto()).(*onnxpb.ModelProto)
	for _, node := range inside.GetGraph().GetNode() {
		for _, g := range onnx.Subgraphs(node) {
			g.Node[0].Domain = proto.String("my.ops")
		}
	}
	dynamic := identity()
	dynamic.Graph.Input[0].GetType().GetTensorType().Shape = nil

	for name, c := range map[string]struct {
		model *onnxpb.ModelProto
		want  string // "": no error
	}{
		"custom operator":                   {custom, "it uses the custom operator my.ops:Sharpen (node "},
		"custom operator inside a Loop":     {inside, "it uses the custom operator my.ops:"},
		"no rank":                           {dynamic, "FLOAT[…] has no shape, not even a number of dimensions"},
		"nothing wrong":                     {identity(), ""},
		"an operator that the model brings": {withFunction(custom), ""},
	} {
		_, err := NewMaker(onnx.New(c.model), nil, Options{Data: rows(1), Cache: "cache"})
		var source *SourceError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!errors.As(err, &source) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v lacks %q", name, err, c.want)
		}
	}
}

// withFunction defines the custom operator in the model.
func withFunction(p *onnxpb.ModelProto) *onnxpb.ModelProto {
	p = proto.Clone(p).(*onnxpb.ModelProto)
	p.Functions = []*onnxpb.FunctionProto{{Name: proto.String("Sharpen"), Domain: proto.String("my.ops")}}
	return p
}
