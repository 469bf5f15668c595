package onnx_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"tuner/internal/alloctest"
	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// An empty node takes two bytes of a file, and a hundred times as much in memory.
func TestManyEmptyParts(t *testing.T) {
	const n = 2 << 20
	for what, field := range map[string]protowire.Number{"nodes": 1, "initializers": 5, "inputs": 11, "descriptions": 13} {
		part := protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), nil)
		graph := bytes.Repeat(part, n)
		data := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 8)
		data = protowire.AppendBytes(protowire.AppendTag(data, 7, protowire.BytesType), graph)
		var err error
		used := alloctest.Bytes(func() { _, err = onnx.Parse("m.onnx", data) })
		if err == nil || !strings.Contains(err.Error(), "in memory") {
			t.Errorf("%s: %v", what, err)
		}
		if used > 16<<20 {
			t.Errorf("%s: %d bytes take %d", what, len(data), used)
		}
	}
}

// A graph of small nodes with small attributes is valid.
func TestSmallPartsAreUsual(t *testing.T) {
	t.Parallel()
	p := nested(1, 1)
	for i := range 20000 {
		node := &onnxpb.NodeProto{OpType: proto.String("Relu"), Input: []string{"x"}, Output: []string{fmt.Sprint(i)}}
		for _, name := range []string{"axis", "keepdims", "mode"} {
			node.Attribute = append(node.Attribute, &onnxpb.AttributeProto{Name: &name, I: proto.Int64(1), Type: onnxpb.AttributeProto_INT.Enum()})
		}
		p.Graph.Node = append(p.Graph.Node, node)
	}
	p.Graph.Output[0].Type = &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(1)}}}
	if _, err := onnx.Parse("m.onnx", encode(t, p)); err != nil {
		t.Error(err)
	}
}
