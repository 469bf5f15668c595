package quantization

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/shapes"
)

// oldestRaised is the oldest operator set that raiseOpset raises. Between 10 and 11 many operators
// changed their inputs (Resize, Clip, Pad).
const oldestRaised = 11

// raisedIR is the version of ONNX's file format that came with operator set 13.
const raisedIR = 7

// raiseOpset returns a clean model in operator set 13 if it has an older one that can be raised, and
// the same model otherwise. Between 11 and 13 these operators changed (ONNX, Changelog.md):
//
//   - Squeeze, Unsqueeze, ReduceSum and Split: an attribute became an input.
//   - Dropout: the attribute ratio became an input. It has no effect without training.
//   - Softmax, LogSoftmax and Hardmax: they normalise one dimension, and no longer all from axis on.
//     Both are the same on the last dimension.
//
// A node that cannot be raised, or that has a graph of its own, leaves the model as it is.
func raiseOpset(clean *onnx.Model) (*onnx.Model, error) {
	version := clean.Opset("")
	if version < oldestRaised || version >= staticOpset || len(clean.Proto().GetFunctions()) > 0 {
		return clean, nil
	}
	infos, err := shapes.Infer(clean)
	if err != nil {
		return nil, err
	}
	e := rewrite.NewEditor(clean)
	for _, node := range clean.Nodes() {
		raised, ok := raiseNode(e, infos, node)
		if !ok {
			return clean, nil
		}
		e.Keep(raised)
	}
	raised, err := e.Finish()
	if err != nil {
		return nil, err
	}
	p := rewrite.Draft(raised.Proto())
	p.OpsetImport = slices.Clone(p.OpsetImport)
	p.IrVersion = proto.Int64(max(p.GetIrVersion(), raisedIR))
	for i, set := range p.OpsetImport {
		if rewrite.IsDefaultDomain(set.GetDomain()) {
			p.OpsetImport[i] = &onnxpb.OperatorSetIdProto{Domain: set.Domain, Version: proto.Int64(staticOpset)}
		}
	}
	return raised.Replace(p)
}

// raiseNode returns a node as operator set 13 has it. It returns false if there is no such form.
func raiseNode(e *rewrite.Editor, infos map[string]shapes.Info, node *onnxpb.NodeProto) (raised *onnxpb.NodeProto, ok bool) {
	if len(onnx.Subgraphs(node)) > 0 {
		return nil, false
	}
	if !rewrite.IsDefaultDomain(node.GetDomain()) {
		return node, true
	}
	switch node.GetOpType() {
	case "Squeeze", "Unsqueeze", "ReduceSum":
		return withInput(e, node, "axes"), true
	case "Split":
		return withInput(e, node, "split"), true
	case "Dropout":
		return without(node, "ratio"), true
	case "Softmax", "LogSoftmax", "Hardmax":
		axis := int64(1) // the default before 13
		if a := onnx.Attribute(node, "axis"); a != nil {
			axis = a.GetI()
		}
		info := infos[rewrite.FirstName(node.GetInput())]
		isLast := axis == -1 || info.Ranked && axis == int64(len(info.Shape))-1
		raised := without(node, "axis")
		raised.Attribute = append(raised.Attribute, &onnxpb.AttributeProto{
			Name: proto.String("axis"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(-1),
		})
		return raised, isLast
	}
	return node, true
}

// withInput makes an attribute of whole numbers the second input.
func withInput(e *rewrite.Editor, node *onnxpb.NodeProto, name string) *onnxpb.NodeProto {
	a := onnx.Attribute(node, name)
	if a == nil {
		return node
	}
	raised := without(node, name)
	values := e.Constant(fmt.Sprintf("%s_%s", node.GetName(), name), onnx.Int64, rewrite.Int64Bytes(a.GetInts()), int64(len(a.GetInts())))
	raised.Input = append(slices.Clone(node.GetInput()), values)
	return raised
}

// without copies a node without an attribute.
func without(node *onnxpb.NodeProto, name string) *onnxpb.NodeProto {
	copied := rewrite.Shallow(node)
	copied.Attribute = nil
	for _, a := range node.GetAttribute() {
		if a.GetName() != name {
			copied.Attribute = append(copied.Attribute, a)
		}
	}
	return copied
}
