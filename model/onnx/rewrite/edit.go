package rewrite

import (
	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// Editor writes a new main graph next to a clean model: nodes in order, constants, and unique
// names.
type Editor struct {
	*onnx.Model // the clean model; the new graph shares its tensors
	Proto       *onnxpb.ModelProto
	nodes       []*onnxpb.NodeProto
	Used        Names // names of nodes and values, including subgraphs
}

// NewEditor returns the editor of a clean model.
func NewEditor(clean *onnx.Model) *Editor {
	e := &Editor{Model: clean, Proto: Draft(clean.Proto()), Used: Names{}}
	e.reserve(clean.Graph())
	return e
}

// reserve marks every name of a graph and its subgraphs as used.
func (e *Editor) reserve(g *onnxpb.GraphProto) {
	for _, v := range g.GetInput() {
		e.Used[v.GetName()] = true
	}
	for _, t := range g.GetInitializer() {
		e.Used[t.GetName()] = true
	}
	for _, t := range g.GetSparseInitializer() {
		e.Used[t.GetValues().GetName()] = true
	}
	for _, node := range g.GetNode() {
		e.Used[node.GetName()] = true
		for _, name := range node.GetOutput() {
			e.Used[name] = true
		}
		for _, sub := range onnx.Subgraphs(node) {
			e.reserve(sub)
		}
	}
}

// Keep writes a node of the clean model without changes.
func (e *Editor) Keep(node *onnxpb.NodeProto) { e.nodes = append(e.nodes, node) }

// AddNode writes a node of ONNX's own set. It gets the first free name that begins with name.
func (e *Editor) AddNode(op, name string, inputs, outputs []string, attributes ...*onnxpb.AttributeProto) {
	e.nodes = append(e.nodes, &onnxpb.NodeProto{
		Name: proto.String(e.Used.Fresh(name)), OpType: proto.String(op), Input: inputs, Output: outputs, Attribute: attributes,
	})
}

// Compute writes a node with one new output, named after the node. It returns that name.
func (e *Editor) Compute(op, name string, inputs []string, attributes ...*onnxpb.AttributeProto) string {
	output := e.Used.Fresh(name + "_output")
	e.AddNode(op, name, inputs, []string{output}, attributes...)
	return output
}

// Constant writes an initializer and returns its name, the first free one that begins with name.
// raw is little-endian.
func (e *Editor) Constant(name string, t onnx.DataType, raw []byte, dims ...int64) string {
	tensor := NewTensor(t, raw, dims...)
	tensor.Name = proto.String(e.Used.Fresh(name))
	e.Proto.Graph.Initializer = append(e.Proto.Graph.Initializer, tensor)
	return tensor.GetName()
}

// Output declares a computed value as an additional output of the graph.
func (e *Editor) Output(name string, t onnx.DataType, dims ...int64) {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range dims {
		shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{
			Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d},
		})
	}
	e.Proto.Graph.Output = append(e.Proto.Graph.Output, &onnxpb.ValueInfoProto{
		Name: proto.String(name),
		Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
			TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(t)), Shape: shape},
		}},
	})
}

// Finish returns the new model, without unused parts.
func (e *Editor) Finish() (*onnx.Model, error) {
	e.Proto.Graph.Node = e.nodes
	sweep(e.Proto.Graph)
	return e.Replace(e.Proto)
}

// IntAttribute returns an attribute with one integer.
func IntAttribute(name string, v int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(v)}
}

// Retyped copies the description of a value with another element type.
func Retyped(v *onnxpb.ValueInfoProto, t onnx.DataType) *onnxpb.ValueInfoProto {
	v = Shallow(v)
	v.Type = Shallow(v.GetType())
	tensor := &onnxpb.TypeProto_Tensor{}
	if old := v.GetType().GetTensorType(); old != nil {
		tensor = Shallow(old)
	}
	tensor.ElemType = proto.Int32(int32(t))
	v.Type.Value = &onnxpb.TypeProto_TensorType{TensorType: tensor}
	return v
}
