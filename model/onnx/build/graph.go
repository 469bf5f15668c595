// Package build makes ONNX models. It has a small graph builder, the MiniLM sentence encoder from
// its published weights, and models with random weights for tests and demonstrations.
//
// It stands before the data flow: its models are written to files, which other packages read like a
// user's model. It is not a general framework: it connects operators but does not know their
// meaning. This package's own tests find wrong graphs with ONNX Runtime.
package build

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

const (
	opset     = 17 // has LayerNormalization; every supported ONNX Runtime knows it
	irVersion = 8  // the format version from the same time
)

// Graph collects a graph. Every method that makes a value returns its name, which other methods
// take as input.
type Graph struct {
	proto *onnxpb.GraphProto
	next  map[string]int // per operator, numbers its values
}

// NewGraph begins a model's main graph.
func NewGraph(name string) *Graph {
	return &Graph{proto: &onnxpb.GraphProto{Name: proto.String(name)}, next: map[string]int{}}
}

// Subgraph begins a graph for an attribute of one of g's nodes (GraphAttribute). It may use g's
// values. Its own values get other names than g's, as ONNX requires.
func (g *Graph) Subgraph(name string) *Graph {
	return &Graph{proto: &onnxpb.GraphProto{Name: proto.String(name)}, next: g.next}
}

// Model completes the graph and returns the model.
func (g *Graph) Model() *onnx.Model {
	return onnx.New(&onnxpb.ModelProto{
		IrVersion:    proto.Int64(irVersion),
		ProducerName: proto.String("tuner"),
		OpsetImport:  []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(opset)}},
		Graph:        g.proto,
	})
}

// Input declares an input.
func (g *Graph) Input(name string, t onnx.DataType, shape ...onnx.Dim) string {
	g.proto.Input = append(g.proto.Input, tensorInfo(name, t, shape))
	return name
}

// Output declares a value as an output of the graph, under the value's own name.
func (g *Graph) Output(value string, t onnx.DataType, shape ...onnx.Dim) {
	g.proto.Output = append(g.proto.Output, tensorInfo(value, t, shape))
}

// OutputAs declares a value as an output with another name.
func (g *Graph) OutputAs(name, value string, t onnx.DataType, shape ...onnx.Dim) {
	g.addNode("Identity", []string{value}, []string{name}, nil)
	g.Output(name, t, shape...)
}

func tensorInfo(name string, t onnx.DataType, shape []onnx.Dim) *onnxpb.ValueInfoProto {
	dims := &onnxpb.TensorShapeProto{}
	for _, d := range shape {
		dim := &onnxpb.TensorShapeProto_Dimension{}
		switch {
		case d.IsFixed():
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d.Size}
		case d.Symbol != "":
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d.Symbol}
		}
		dims.Dim = append(dims.Dim, dim)
	}
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(t)), Shape: dims},
	}}}
}

// Node adds a node with one output.
func (g *Graph) Node(op string, inputs []string, attributes ...*onnxpb.AttributeProto) string {
	output := fmt.Sprintf("%s_%d", op, g.next[op])
	g.addNode(op, inputs, []string{output}, attributes)
	return output
}

// Nodes adds a node and returns the names of its n outputs.
func (g *Graph) Nodes(op string, n int, inputs []string, attributes ...*onnxpb.AttributeProto) []string {
	outputs := make([]string, n)
	for i := range outputs {
		outputs[i] = fmt.Sprintf("%s_%d_%d", op, g.next[op], i)
	}
	g.addNode(op, inputs, outputs, attributes)
	return outputs
}

func (g *Graph) addNode(op string, inputs, outputs []string, attributes []*onnxpb.AttributeProto) {
	g.proto.Node = append(g.proto.Node, &onnxpb.NodeProto{
		Name: proto.String(fmt.Sprintf("node_%s_%d", op, g.next[op])), OpType: proto.String(op),
		Input: inputs, Output: outputs, Attribute: attributes,
	})
	g.next[op]++
}

// Floats adds a FLOAT constant. The shape must match the number of values.
func (g *Graph) Floats(name string, values []float32, shape ...int64) string {
	raw := make([]byte, 0, 4*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return g.constant(name, onnx.Float, raw, shape)
}

// Int64s adds an INT64 constant. The shape must match the number of values.
func (g *Graph) Int64s(name string, values []int64, shape ...int64) string {
	raw := make([]byte, 0, 8*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	return g.constant(name, onnx.Int64, raw, shape)
}

// True adds a BOOL scalar with the value true.
func (g *Graph) True(name string) string {
	return g.constant(name, onnx.Bool, []byte{1}, nil)
}

func (g *Graph) constant(name string, t onnx.DataType, raw []byte, shape []int64) string {
	g.proto.Initializer = append(g.proto.Initializer, &onnxpb.TensorProto{
		Name: proto.String(name), DataType: proto.Int32(int32(t)), Dims: shape, RawData: raw,
	})
	return name
}

// in lists a node's inputs.
func in(values ...string) []string { return values }

// IntAttribute makes an attribute with an integer.
func IntAttribute(name string, v int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(v)}
}

// IntsAttribute makes an attribute with a list of integers.
func IntsAttribute(name string, v ...int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: v}
}

// FloatAttribute makes an attribute with a float.
func FloatAttribute(name string, v float32) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_FLOAT.Enum(), F: proto.Float32(v)}
}

// GraphAttribute makes an attribute with a graph: the body of a Loop or a branch of an If.
func GraphAttribute(name string, v *Graph) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: v.proto}
}
