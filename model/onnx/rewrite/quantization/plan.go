package quantization

import (
	"fmt"
	"slices"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/shapes"
)

// plan has the nodes of a model that compute in 8 bits.
//
// ONNX Runtime's CPU provider converts a node together with its inputs' DequantizeLinear nodes and
// its output's QuantizeLinear. The QuantizeLinear must be the output's only user (onnxruntime's
// QDQ::NodeGroupSelector). The plan never breaks such groups.
type plan struct {
	model  *onnx.Model
	layers map[*onnxpb.NodeProto]layer // nodes with weights
	others map[*onnxpb.NodeProto]scaling
	// roots: value → the value whose scale it has, for nodes that keep their input's scale
	roots map[string]string
	kept  []rewrite.Kept
}

// layer is a node with constant weights: Conv, MatMul or Gemm.
type layer struct {
	product
	axis int // the weights' dimension of the outputs
}

// scaling tells how the output's scale of a node without weights follows from its inputs.
type scaling int

const (
	none scaling = iota
	own          // the output has its own scale
	// the output has its first input's scale; the other inputs are not activations
	carried
)

// newPlan makes a plan for a clean model whose normalisations and biases are folded into its
// layers.
func newPlan(m *onnx.Model, keep []string) (*plan, error) {
	infos, err := shapes.Infer(m)
	if err != nil {
		return nil, err
	}
	p := &plan{model: m, layers: map[*onnxpb.NodeProto]layer{}, others: map[*onnxpb.NodeProto]scaling{}, roots: map[string]string{}}
	var keepers []*onnxpb.NodeProto
	for _, node := range m.Nodes() {
		l, reason, candidate := findLayer(m, node)
		switch {
		case candidate && reason == "" && slices.Contains(keep, node.GetName()):
			keepers, reason = append(keepers, node), rewrite.KeptOnRequest
			p.layers[node] = l
		case candidate && reason == "":
			p.layers[node] = l
		default:
			if s := scalingOf(node); s != none && allFloat(infos, node, s) {
				p.others[node] = s
			}
		}
		if reason != "" {
			p.kept = append(p.kept, rewrite.Kept{Node: node.GetName(), Op: node.GetOpType(), Reason: reason})
		}
		p.kept = append(p.kept, innerProducts(m, node)...)
	}
	p.settle()
	// before any node is kept, so that the same ranges are valid for every choice of kept nodes
	p.findRoots()
	for _, node := range keepers {
		delete(p.layers, node)
	}
	p.settle()
	return p, nil
}

// findLayer reports whether a node is a candidate. For a candidate it returns the layer, or the
// reason why it cannot be converted. A layer with only constant inputs is no candidate: runtimes
// compute it once.
func findLayer(m *onnx.Model, node *onnxpb.NodeProto) (l layer, reason string, candidate bool) {
	if !varies(m, firstInput(node)) {
		return l, "", false
	}
	if rewrite.IsOp(node, "Conv") {
		return findConvolution(m, node)
	}
	p, reason, candidate := examine(m, node)
	l = layer{product: p, axis: 1}
	if !candidate || reason != "" {
		return l, reason, candidate
	}
	if rank := len(p.weight.Dims()); rank != 2 {
		return l, fmt.Sprintf("its weight has %d dimensions; only matrices are converted", rank), true
	}
	return l, l.obstacle(m, p.weight.Dims()[0]), true
}

func firstInput(node *onnxpb.NodeProto) string {
	if len(node.GetInput()) == 0 {
		return ""
	}
	return node.GetInput()[0]
}

// varies reports whether a value is an input of the model or computed.
func varies(m *onnx.Model, value string) bool {
	return value != "" && (m.Producer(value) != nil || slices.ContainsFunc(m.Inputs(), func(v onnx.Value) bool { return v.Name == value }))
}

func findConvolution(m *onnx.Model, node *onnxpb.NodeProto) (l layer, reason string, candidate bool) {
	in := node.GetInput()
	if len(in) < 2 || len(node.GetOutput()) != 1 {
		return l, "", false
	}
	l.product = product{node: node, activation: in[0]}
	var ok bool
	if l.weight, ok = rewrite.FindConstant(m, in[1]); !ok {
		return l, "", false
	}
	if len(in) > 2 {
		l.bias = in[2]
	}
	dims := l.weight.Dims()
	elements, _ := onnx.Elements(dims)
	switch {
	case !l.weight.IsFloat():
		return l, fmt.Sprintf("its weight is %s; only FLOAT is converted", onnx.DataType(l.weight.Tensor.GetDataType())), true
	case len(dims) < 3 || elements == 0:
		return l, fmt.Sprintf("its weight has the shape %v", dims), true
	}
	return l, l.obstacle(m, elements/dims[0]), true
}

// mostProducts is the number of products of 8-bit numbers that one output may sum. Their sum stays
// below 2^30, and so does the bias, so that both together fit into 32 bits.
const mostProducts = largestRows / 2

// obstacle returns the reason why a layer with that many products per output cannot be converted;
// "" if it can.
func (l layer) obstacle(m *onnx.Model, products int64) string {
	if products > mostProducts {
		return fmt.Sprintf("it sums %d products; the sum of more than %d can exceed 30 bits", products, mostProducts)
	}
	if l.bias == "" {
		return ""
	}
	bias, ok := rewrite.FindConstant(m, l.bias)
	switch {
	case !ok:
		return "its bias is computed"
	case !bias.IsFloat():
		return fmt.Sprintf("its bias is %s", onnx.DataType(bias.Tensor.GetDataType()))
	case !isRow(bias.Dims(), l.channels()):
		return fmt.Sprintf("its bias has the shape %v", bias.Dims())
	}
	return ""
}

// channels returns the number of outputs with weights of their own.
func (l layer) channels() int64 { return l.weight.Dims()[l.axis] }

// scalingOf has the operators that ONNX Runtime's CPU provider computes on 8-bit numbers (rules of
// onnxruntime's QDQSelectorActionTransformer). Resize copies pixels only in its mode "nearest".
// AveragePool has no 8-bit form with dilations.
func scalingOf(node *onnxpb.NodeProto) scaling {
	if !rewrite.IsDefaultDomain(node.GetDomain()) || len(node.GetOutput()) != 1 || len(node.GetInput()) == 0 {
		return none
	}
	switch node.GetOpType() {
	case "Add", "Mul", "Concat", "GlobalAveragePool", "LeakyRelu", "Sigmoid":
		return own
	case "AveragePool":
		if onnx.Attribute(node, "dilations") == nil {
			return own
		}
	case "MaxPool", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Slice":
		return carried
	case "Resize":
		if mode := string(onnx.Attribute(node, "mode").GetS()); mode == "" || mode == "nearest" {
			return carried
		}
	}
	return none
}

// numbers returns the inputs of a node that are activations, not shapes or positions.
func numbers(node *onnxpb.NodeProto, s scaling) []string {
	if s == carried {
		return node.GetInput()[:1]
	}
	return node.GetInput()
}

func allFloat(infos map[string]shapes.Info, node *onnxpb.NodeProto, s scaling) bool {
	return !slices.ContainsFunc(append(slices.Clone(numbers(node, s)), node.GetOutput()[0]),
		func(v string) bool { return infos[v].Type != onnx.Float })
}

// settle removes nodes without 8-bit neighbours from the plan, until nothing changes. Such a node
// has an input in float, or its output is needed only in float. In 8 bits it would cost more time
// than it saves, and accuracy too.
func (p *plan) settle() {
	for before := -1; before != len(p.others); {
		before = len(p.others)
		for _, node := range p.model.Nodes() {
			s := p.others[node]
			if s == none {
				continue
			}
			fed := !slices.ContainsFunc(numbers(node, s), func(v string) bool { return p.source(v) == nil && !p.feedsLayer(v) })
			if !fed || !p.isWanted(p.result(node)) {
				delete(p.others, node)
			}
		}
	}
}

// feedsLayer reports whether a layer uses a value as its activation.
func (p *plan) feedsLayer(value string) bool {
	return slices.ContainsFunc(p.model.Consumers(value), func(u onnx.Use) bool {
		_, ok := p.layers[u.Node]
		return ok && u.Index == 0
	})
}

// isWanted reports whether some node uses a value in 8 bits.
func (p *plan) isWanted(value string) bool {
	return p.feedsLayer(value) || slices.ContainsFunc(p.model.Consumers(value), func(u onnx.Use) bool {
		s := p.others[u.Node]
		return s != none && u.Index >= 0 && u.Index < len(numbers(u.Node, s))
	})
}

// result returns the quantized value of a node in 8 bits: its output, or that of the limiter after
// it.
func (p *plan) result(node *onnxpb.NodeProto) string {
	output := node.GetOutput()[0]
	if p.others[node] == carried {
		return output
	}
	if next := onlyConsumer(p.model, output); p.isLimiter(next) && next.GetInput()[0] == output {
		return next.GetOutput()[0]
	}
	return output
}

// isLimiter reports whether a node only clips negative values, and maybe large ones. An 8-bit
// number with the range of the node's output has the same effect.
func (p *plan) isLimiter(node *onnxpb.NodeProto) bool {
	switch {
	case rewrite.IsOp(node, "Relu"):
		return true
	case !rewrite.IsOp(node, "Clip") || len(node.GetInput()) < 2:
		return false
	}
	least, ok := p.number(node.GetInput()[1])
	if !ok || least != 0 {
		return false
	}
	if len(node.GetInput()) < 3 || node.GetInput()[2] == "" {
		return true
	}
	_, ok = p.number(node.GetInput()[2])
	return ok
}

// number returns the value of a FLOAT constant with one element.
func (p *plan) number(value string) (float32, bool) {
	c, ok := rewrite.FindConstant(p.model, value)
	if !ok || !c.IsFloat() {
		return 0, false
	}
	values, err := c.Floats(p.model)
	if err != nil || len(values) != 1 {
		return 0, false
	}
	return values[0], true
}

// source returns the node in 8 bits that computes a value; nil without one.
func (p *plan) source(value string) *onnxpb.NodeProto {
	node := p.model.Producer(value)
	if p.isLimiter(node) && !p.isPlanned(node) {
		node = p.model.Producer(node.GetInput()[0])
	}
	if node != nil && p.isPlanned(node) && p.result(node) == value {
		return node
	}
	return nil
}

func (p *plan) isPlanned(node *onnxpb.NodeProto) bool {
	_, ok := p.layers[node]
	return ok || p.others[node] != none
}

// isQuantized reports whether a value exists in 8 bits. The result of a convolution must, so that
// ONNX Runtime computes it in integers. Results of other layers are only quantized if some node
// uses them in 8 bits, since they are more accurate in float.
func (p *plan) isQuantized(value string) bool {
	source := p.source(value)
	return rewrite.IsOp(source, "Conv") || p.others[source] != none || p.isWanted(value)
}

// findRoots determines for each value the value whose scale it has.
func (p *plan) findRoots() {
	for _, node := range p.model.Nodes() {
		if p.others[node] == carried {
			p.roots[node.GetOutput()[0]] = p.root(node.GetInput()[0])
		}
	}
}

// root returns the value whose scale a value has, usually itself.
func (p *plan) root(value string) string {
	if root, ok := p.roots[value]; ok {
		return root
	}
	return value
}

// calibrated lists the values whose ranges are needed, in graph order.
func (p *plan) calibrated() []string {
	var values []string
	seen := map[string]bool{}
	p.eachQuantized(func(value string) {
		if root := p.root(value); !seen[root] {
			seen[root] = true
			values = append(values, root)
		}
	})
	return values
}

// eachQuantized calls visit for each value that exists in 8 bits: inputs first, then in node order.
func (p *plan) eachQuantized(visit func(value string)) {
	for _, v := range p.model.Inputs() {
		if p.isQuantized(v.Name) {
			visit(v.Name)
		}
	}
	for _, node := range p.model.Nodes() {
		for _, name := range node.GetOutput() {
			if name != "" && p.isQuantized(name) {
				visit(name)
			}
		}
	}
}

// sorted lists the planned layers in graph order.
func (p *plan) sorted() []layer {
	var list []layer
	for _, node := range p.model.Nodes() {
		if l, ok := p.layers[node]; ok {
			list = append(list, l)
		}
	}
	return list
}
