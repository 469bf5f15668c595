package float16

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
)

// convert writes all nodes of the graph.
func (g *halfGraph) convert() error {
	for _, node := range g.proto.GetNode() {
		if err := g.convertNode(node); err != nil {
			return err
		}
	}
	return nil
}

func (g *halfGraph) convertNode(node *onnxpb.NodeProto) error {
	s, stays := g.stays[node]
	name := g.path + node.GetName()
	switch {
	case stays && s.reason != "":
		g.summary.Kept = append(g.summary.Kept, rewrite.Kept{Node: name, Op: node.GetOpType(), Reason: s.reason})
	case !stays && g.touches(node):
		g.summary.Converted = append(g.summary.Converted, name)
		if !rewrite.IsOp(node, "Cast") && !rewrite.IsOp(node, "Clip") { // no model consists of these only; this rewrite adds them
			g.halved++
		}
	}
	written := rewrite.Shallow(node)
	var err error
	if written.Input, err = g.inputs(node, stays); err != nil {
		return err
	}
	if stays {
		err = g.pinSubgraphs(written)
	} else {
		err = g.convertAttributes(written)
	}
	if err != nil {
		return err
	}
	written.Output = slices.Clone(node.GetOutput())
	for i, value := range node.GetOutput() {
		if !g.isFloat(value) {
			continue
		}
		t := onnx.Float16
		if stays || slices.Contains(floatOutputs(rewrite.Operator(node)), i) {
			t = onnx.Float
		}
		written.Output[i] = g.define(value, t)
		g.forms[value].cut = s.large
	}
	g.written = append(g.written, written)
	return nil
}

// touches reports whether a node uses FLOAT values.
func (g *halfGraph) touches(node *onnxpb.NodeProto) bool {
	for _, name := range slices.Concat(node.GetInput(), node.GetOutput()) {
		if g.typeOf(name) == onnx.Float {
			return true
		}
	}
	return false
}

// inputs returns a node's inputs in the types that the node needs.
func (g *halfGraph) inputs(node *onnxpb.NodeProto, stays bool) ([]string, error) {
	inputs := slices.Clone(node.GetInput())
	fixed := floatInputs(rewrite.Operator(node), g.Opset(""))
	for i, name := range inputs {
		t := onnx.Float16
		if stays || slices.Contains(fixed, i) {
			t = onnx.Float
		}
		var err error
		if inputs[i], err = g.as(name, t); err != nil {
			return nil, err
		}
	}
	return inputs, nil
}

// convertAttributes converts a copied node's attributes to fp16: constants, the type of a Cast,
// subgraphs.
func (g *halfGraph) convertAttributes(node *onnxpb.NodeProto) error {
	node.Attribute = slices.Clone(node.GetAttribute())
	float := len(node.GetOutput()) > 0 && g.isFloat(node.GetOutput()[0])
	switch {
	case rewrite.IsOp(node, "Cast") && float:
		node.Attribute = []*onnxpb.AttributeProto{rewrite.IntAttribute("to", int64(onnx.Float16))}
	case rewrite.IsOp(node, "Constant") && float, rewrite.IsOp(node, "ConstantOfShape") && float:
		return g.convertConstant(node)
	}
	for i, a := range node.GetAttribute() {
		if a.GetG() == nil {
			continue
		}
		sub := g.newGraph(g, a.GetG())
		sub.path = g.path + node.GetName() + "/"
		sub.proto = draftGraph(a.GetG())
		if err := sub.convertSubgraph(); err != nil {
			return err
		}
		node.Attribute[i] = rewrite.Shallow(a)
		node.Attribute[i].G = sub.proto
	}
	return nil
}

// convertConstant gives a Constant or ConstantOfShape an fp16 value. Without a value,
// ConstantOfShape repeats the FLOAT 0.
func (g *halfGraph) convertConstant(node *onnxpb.NodeProto) error {
	value := rewrite.ConstantTensor(node)
	if rewrite.IsOp(node, "ConstantOfShape") {
		value = onnx.Attribute(node, "value").GetT()
		if value == nil {
			value = rewrite.NewTensor(onnx.Float, rewrite.FloatBytes([]float32{0}), 1)
		}
	}
	t, err := g.halve(value, value.GetName())
	if err != nil {
		return err
	}
	node.Attribute = []*onnxpb.AttributeProto{{Name: proto.String("value"), Type: onnxpb.AttributeProto_TENSOR.Enum(), T: t}}
	return nil
}

// convertSubgraph converts a graph in an attribute. Its inputs and outputs become fp16.
func (g *halfGraph) convertSubgraph() error {
	for i, v := range g.proto.Input {
		if g.isFloat(v.GetName()) {
			g.define(v.GetName(), onnx.Float16)
			g.proto.Input[i] = rewrite.Retyped(v, onnx.Float16)
		}
	}
	if err := g.convert(); err != nil {
		return err
	}
	for i, v := range g.proto.Output {
		if g.typeOf(v.GetName()) == onnx.Float {
			name, err := g.as(v.GetName(), onnx.Float16)
			if err != nil {
				return err
			}
			g.proto.Output[i] = rewrite.Retyped(v, onnx.Float16)
			g.proto.Output[i].Name = proto.String(name)
		}
	}
	g.finish()
	return nil
}

// pinSubgraphs keeps the subgraphs of a copied node in fp32. Captured values are in fp32 too.
func (g *halfGraph) pinSubgraphs(node *onnxpb.NodeProto) error {
	node.Attribute = slices.Clone(node.GetAttribute())
	for i, a := range node.GetAttribute() {
		if a.GetG() == nil {
			continue
		}
		pinned, err := g.pin(a.GetG(), map[string]bool{})
		if err != nil {
			return err
		}
		node.Attribute[i] = rewrite.Shallow(a)
		node.Attribute[i].G = pinned
	}
	return nil
}

// pin copies a graph and makes it capture the fp32 form of values. inner has the names that the
// graphs in between define.
func (g *halfGraph) pin(original *onnxpb.GraphProto, inner map[string]bool) (*onnxpb.GraphProto, error) {
	graph := draftGraph(original)
	own := rewrite.Names{}
	for name := range inner {
		own[name] = true
	}
	for _, v := range graph.GetInput() {
		own[v.GetName()] = true
	}
	for _, t := range graph.GetInitializer() {
		own[t.GetName()] = true
	}
	for _, node := range graph.GetNode() {
		for _, name := range node.GetOutput() {
			own[name] = true
		}
	}
	for i, node := range graph.Node {
		node = rewrite.Shallow(node)
		node.Input = slices.Clone(node.GetInput())
		for k, name := range node.Input {
			if own[name] {
				continue
			}
			var err error
			if node.Input[k], err = g.as(name, onnx.Float); err != nil {
				return nil, err
			}
		}
		node.Attribute = slices.Clone(node.GetAttribute())
		for k, a := range node.Attribute {
			if a.GetG() == nil {
				continue
			}
			pinned, err := g.pin(a.GetG(), own)
			if err != nil {
				return nil, err
			}
			node.Attribute[k] = rewrite.Shallow(a)
			node.Attribute[k].G = pinned
		}
		graph.Node[i] = node
	}
	return graph, nil
}

// draftGraph copies a graph so that its lists can be changed. The elements are shared.
func draftGraph(g *onnxpb.GraphProto) *onnxpb.GraphProto {
	return rewrite.Draft(&onnxpb.ModelProto{Graph: g}).Graph
}
