package shapes

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// The cost of finding a value does not grow with the number of graphs between its use and its
// definition.
func TestOwnerInOneStep(t *testing.T) {
	t.Parallel()
	m := onnx.New(&onnxpb.ModelProto{Graph: &onnxpb.GraphProto{}})
	s := newScope(m)
	s.define("x", known(onnx.Float, nil))
	for level := range 1000 {
		s = s.inner(&onnxpb.GraphProto{})
		s.define(fmt.Sprint("y", level), known(onnx.Int64, nil))
	}
	if len(s.owners["x"]) != 1 || s.info("x").Type != onnx.Float || s.info("y999").Type != onnx.Int64 {
		t.Errorf("x is %v, y999 is %v", s.info("x"), s.info("y999"))
	}
}

// A value of a subgraph is not visible after it. A value that it hides is visible again.
func TestInnerNamesEnd(t *testing.T) {
	t.Parallel()
	constant := func(name string, kind onnx.DataType) *onnxpb.TensorProto {
		return &onnxpb.TensorProto{Name: proto.String(name), DataType: proto.Int32(int32(kind))}
	}
	body := &onnxpb.GraphProto{
		Initializer: []*onnxpb.TensorProto{constant("x", onnx.Int64), constant("inner", onnx.Int64)},
		Output:      []*onnxpb.ValueInfoProto{{Name: proto.String("x")}},
	}
	branch := func(name string) *onnxpb.AttributeProto {
		return &onnxpb.AttributeProto{Name: proto.String(name), G: body, Type: onnxpb.AttributeProto_GRAPH.Enum()}
	}
	node := func(op, in, out string, attributes ...*onnxpb.AttributeProto) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: proto.String(op), Input: []string{in}, Output: []string{out}, Attribute: attributes}
	}
	graph := &onnxpb.GraphProto{
		Initializer: []*onnxpb.TensorProto{constant("x", onnx.Float), constant("condition", onnx.Bool)},
		Node: []*onnxpb.NodeProto{
			node("If", "condition", "y", branch("then_branch"), branch("else_branch")),
			node("Identity", "x", "z"),
		},
	}
	infos, err := Infer(onnx.New(&onnxpb.ModelProto{Graph: graph}))
	if err != nil || infos["y"].Type != onnx.Int64 || infos["z"].Type != onnx.Float {
		t.Errorf("y is %v, z is %v, %v", infos["y"], infos["z"], err)
	}
	graph.Node = append(graph.Node, node("Identity", "inner", "w"))
	if _, err := Infer(onnx.New(&onnxpb.ModelProto{Graph: graph})); err == nil {
		t.Error("a value of a subgraph is used behind it, and nothing is said")
	}
}
