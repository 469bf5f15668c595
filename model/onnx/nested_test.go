package onnx_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/internal/alloctest"
	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// nested makes nested Loops around a node that uses names of the outermost graph.
func nested(depth, names int) *onnxpb.ModelProto {
	free := make([]string, names)
	for i := range free {
		free[i] = fmt.Sprintf("n%d", i)
	}
	inner := &onnxpb.GraphProto{
		Node:   []*onnxpb.NodeProto{{OpType: proto.String("Sum"), Input: free, Output: []string{"s"}}},
		Output: []*onnxpb.ValueInfoProto{{Name: proto.String("s")}},
	}
	for level := range depth {
		out := fmt.Sprintf("o%d", level)
		body := &onnxpb.AttributeProto{Name: proto.String("body"), G: inner, Type: onnxpb.AttributeProto_GRAPH.Enum()}
		inner = &onnxpb.GraphProto{
			Node:   []*onnxpb.NodeProto{{OpType: proto.String("Loop"), Attribute: []*onnxpb.AttributeProto{body}, Output: []string{out}}},
			Output: []*onnxpb.ValueInfoProto{{Name: proto.String(out)}},
		}
	}
	return &onnxpb.ModelProto{Graph: inner, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(17)}}}
}

// Ten times as many levels and names take ten times the work, not a hundred times.
func TestNestedGraphsInOneWalk(t *testing.T) {
	index := func(depth, names int) uint64 {
		p := nested(depth, names)
		var m *onnx.Model
		bytes := alloctest.Bytes(func() { m = onnx.New(p) })
		if uses := m.Consumers(fmt.Sprintf("n%d", names-1)); len(uses) != 1 || uses[0].Index != -1 {
			t.Errorf("the last name is used %d times by the main graph", len(uses))
		}
		return bytes
	}
	small, large := index(20, 1000), index(200, 10000)
	if large > 20*small { // 10, plus some for maps that grow by powers of two
		t.Errorf("%d bytes for the small one, %d, %.1f times as many, for the large one", small, large, float64(large)/float64(small))
	}
}
