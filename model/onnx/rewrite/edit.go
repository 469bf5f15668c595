package rewrite

import (
	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// editor writes a new main graph next to a clean model: nodes in order, constants, and unique
// names.
type editor struct {
	*onnx.Model // the clean model; the new graph shares its tensors
	proto       *onnxpb.ModelProto
	nodes       []*onnxpb.NodeProto
	used        names // names of nodes and values, including subgraphs
}

func newEditor(clean *onnx.Model) *editor {
	e := &editor{Model: clean, proto: draft(clean.Proto()), used: names{}}
	e.reserve(clean.Graph())
	return e
}

// reserve marks every name of a graph and its subgraphs as used.
func (e *editor) reserve(g *onnxpb.GraphProto) {
	for _, v := range g.GetInput() {
		e.used[v.GetName()] = true
	}
	for _, t := range g.GetInitializer() {
		e.used[t.GetName()] = true
	}
	for _, t := range g.GetSparseInitializer() {
		e.used[t.GetValues().GetName()] = true
	}
	for _, node := range g.GetNode() {
		e.used[node.GetName()] = true
		for _, name := range node.GetOutput() {
			e.used[name] = true
		}
		for _, sub := range onnx.Subgraphs(node) {
			e.reserve(sub)
		}
	}
}

// keep writes a node of the clean model without changes.
func (e *editor) keep(node *onnxpb.NodeProto) { e.nodes = append(e.nodes, node) }

// addNode writes a node of ONNX's own set. It gets the first free name that begins with name.
func (e *editor) addNode(op, name string, inputs, outputs []string, attributes ...*onnxpb.AttributeProto) {
	e.nodes = append(e.nodes, &onnxpb.NodeProto{
		Name: proto.String(e.used.fresh(name)), OpType: proto.String(op), Input: inputs, Output: outputs, Attribute: attributes,
	})
}

// compute writes a node with one new output, named after the node. It returns that name.
func (e *editor) compute(op, name string, inputs []string, attributes ...*onnxpb.AttributeProto) string {
	output := e.used.fresh(name + "_output")
	e.addNode(op, name, inputs, []string{output}, attributes...)
	return output
}

// constant writes an initializer and returns its name, the first free one that begins with name.
// raw is little-endian.
func (e *editor) constant(name string, t onnx.DataType, raw []byte, dims ...int64) string {
	tensor := newTensor(t, raw, dims...)
	tensor.Name = proto.String(e.used.fresh(name))
	e.proto.Graph.Initializer = append(e.proto.Graph.Initializer, tensor)
	return tensor.GetName()
}

// output declares a computed value as an additional output of the graph.
func (e *editor) output(name string, t onnx.DataType, dims ...int64) {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range dims {
		shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{
			Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d},
		})
	}
	e.proto.Graph.Output = append(e.proto.Graph.Output, &onnxpb.ValueInfoProto{
		Name: proto.String(name),
		Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
			TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(t)), Shape: shape},
		}},
	})
}

// finish returns the new model, without unused parts.
func (e *editor) finish() (*onnx.Model, error) {
	e.proto.Graph.Node = e.nodes
	sweep(e.proto.Graph)
	return e.Replace(e.proto)
}

func intAttribute(name string, v int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(v)}
}
