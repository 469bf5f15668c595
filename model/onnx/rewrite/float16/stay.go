package float16

import (
	"slices"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
)

// stay is the decision that a node stays in fp32.
type stay struct {
	reason string // "" if it needs no mention: the Cast of an integer to FLOAT
	large  bool   // its results may exceed fp16's range
}

const (
	noHalf   = "its operator has no fp16 form"
	blocked  = "fp16 spoils its operator's results, or runtimes do not have it in fp16"
	untyped  = "the types of its values are not known"
	sums     = "it is part of a sum or a normalisation, whose squares and sums can exceed 65504"
	sparse   = "its value is a sparse tensor"
	counting = "it computes with whole numbers, and fp16 has no odd ones beyond 2048"
)

// heat is the relation of a value to a sum.
type heat int

const (
	cold   heat = iota
	rooted      // the root or the reciprocal of a sum: within fp16's range, but its precision still matters
	grown       // a sum, which may exceed fp16's range
)

// decision finds the nodes of one graph that stay in fp32.
type decision struct {
	*halfGraph
	nodes     []*onnxpb.NodeProto
	stays     map[*onnxpb.NodeProto]stay
	producers map[string]*onnxpb.NodeProto
	consumers map[string][]*onnxpb.NodeProto
	heat      map[string]heat
	counted   map[string]bool // FLOAT values computed only from integers and constants
}

func (g *halfGraph) decide() map[*onnxpb.NodeProto]stay {
	d := &decision{halfGraph: g, nodes: g.proto.GetNode(), stays: map[*onnxpb.NodeProto]stay{}, producers: map[string]*onnxpb.NodeProto{},
		consumers: map[string][]*onnxpb.NodeProto{}, heat: map[string]heat{}, counted: map[string]bool{}}
	for _, node := range d.nodes {
		for _, name := range node.GetInput() {
			d.consumers[name] = append(d.consumers[name], node)
		}
		for _, name := range node.GetOutput() {
			d.producers[name] = node
		}
		if reason := d.ownReason(node); reason != "" {
			d.stays[node] = stay{reason, !isBounded(rewrite.Operator(node))}
		}
	}
	for _, node := range d.nodes {
		d.findSum(node)
	}
	for _, node := range d.nodes {
		d.followSum(node)
		d.followCount(node)
	}
	return d.stays
}

// stayAs keeps a node in fp32. The first reason wins.
func (d *decision) stayAs(node *onnxpb.NodeProto, reason string, large bool) {
	if _, ok := d.stays[node]; !ok {
		d.stays[node] = stay{reason, large}
	}
}

// ownReason returns the reason in a node's own type why it stays in fp32; "" without one.
func (d *decision) ownReason(node *onnxpb.NodeProto) string {
	if d.isUntyped(node) {
		return untyped
	}
	if !d.touches(node) && len(onnx.Subgraphs(node)) == 0 {
		return ""
	}
	switch {
	case slices.Contains(d.options.Keep, d.path+node.GetName()):
		return rewrite.KeptOnRequest
	case slices.Contains(d.options.BlockOps, node.GetOpType()), reduces(node):
		return blocked
	case !hasHalf(rewrite.Operator(node), d.Opset("")):
		return noHalf
	case rewrite.IsOp(node, "Constant") && onnx.Attribute(node, "sparse_value") != nil:
		return sparse
	default:
		return ""
	}
}

// isUntyped reports whether the type of a value of a node is unknown. It could be FLOAT or made
// from FLOAT, so all values of the node keep their types. The results of a subgraph are values of
// its node.
func (d *decision) isUntyped(node *onnxpb.NodeProto) bool {
	for _, name := range slices.Concat(node.GetInput(), node.GetOutput()) {
		if name != "" && d.typeOf(name) == 0 {
			return true
		}
	}
	for _, g := range onnx.Subgraphs(node) {
		for _, v := range g.GetOutput() {
			if _, inside := d.halver.types[g][v.GetName()]; !inside && d.typeOf(v.GetName()) == 0 {
				return true
			}
		}
	}
	return false
}

// isConstant reports whether a value is an initializer with at most limit elements (0: any number).
func (d *decision) isConstant(name string, limit int64) bool {
	for g := d.halfGraph; g != nil; g = g.up {
		if t := g.constants[name]; t != nil {
			n, ok := onnx.Elements(t.GetDims())
			return ok && (limit == 0 || n <= limit)
		}
	}
	return false
}

// findSum recognizes sums, and means of squares with their inputs: the squares, and the subtraction
// of a mean. They stay together, so that a runtime can still recognize a normalisation in single
// operators.
func (d *decision) findSum(node *onnxpb.NodeProto) {
	if len(node.GetInput()) == 0 || len(node.GetOutput()) == 0 || !d.isFloat(node.GetOutput()[0]) {
		return
	}
	square := d.square(node.GetInput()[0])
	after := grown
	switch rewrite.Operator(node) {
	case "ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceProd":
	case "ReduceL2", "ReduceLogSum", "ReduceLogSumExp":
		after = rooted
	case "ReduceMean":
		if square == nil {
			return
		}
	default:
		return
	}
	d.heat[node.GetOutput()[0]] = after
	d.stays[node] = stay{sums, after == grown}
	if square == nil {
		return
	}
	d.stayAs(square, sums, true)
	if centred := d.producers[square.GetInput()[0]]; rewrite.IsOp(centred, "Sub") && len(centred.GetInput()) == 2 {
		d.stayAs(centred, sums, true)
		if mean := d.producers[centred.GetInput()[1]]; rewrite.IsOp(mean, "ReduceMean") {
			d.stayAs(mean, sums, false)
		}
	}
}

// square returns the node that computes a value as a power, a product with itself or an
// exponential; nil otherwise.
func (d *decision) square(value string) *onnxpb.NodeProto {
	node := d.producers[value]
	switch {
	case len(node.GetInput()) == 0:
		return nil
	case rewrite.IsOp(node, "Pow"), rewrite.IsOp(node, "Exp"):
		return node
	case rewrite.IsOp(node, "Mul") && len(node.GetInput()) == 2 && node.GetInput()[0] == node.GetInput()[1]:
		return node
	default:
		return nil
	}
}

// followSum keeps the nodes after a sum in fp32 until it is divided or is a divisor: epsilon, root,
// limits.
func (d *decision) followSum(node *onnxpb.NodeProto) {
	warmth := cold
	pure := true // all values come from sums and constants
	for _, name := range node.GetInput() {
		warmth = max(warmth, d.heat[name])
		if d.typeOf(name) == onnx.Float && d.heat[name] == cold && !d.isConstant(name, 0) {
			pure = false
		}
	}
	if warmth == cold || len(node.GetOutput()) != 1 || !rewrite.IsDefaultDomain(node.GetDomain()) {
		return
	}
	after := warmth
	switch node.GetOpType() {
	case "Sqrt", "Reciprocal", "Pow":
		after = rooted
	case "Log":
		after = cold
	case "Div":
		if after = cold; d.isConstant(node.GetInput()[0], 0) {
			after = rooted
		}
	case "Mul":
		switch {
		case pure:
		case warmth == rooted:
			after = cold
		default:
			return
		}
	case "Add", "Sub", "Max", "Min", "Where":
		if !pure {
			return
		}
	case "Clip", "Abs", "Neg", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Expand", "Transpose", "Flatten", "ReduceMean",
		"ReduceSum", "ReduceMax", "ReduceMin":
	default:
		return
	}
	d.stayAs(node, sums, after == grown)
	d.heat[node.GetOutput()[0]] = after
}

// fewWeights is the largest matrix that only scales numbers, as the frequencies of rotary
// embeddings scale positions. A larger one makes its result a network's activation.
const fewWeights = 1024

// followCount keeps nodes in fp32 that compute only from integers and constants, up to other data
// or weights.
func (d *decision) followCount(node *onnxpb.NodeProto) {
	if len(node.GetOutput()) == 0 {
		return
	}
	output := node.GetOutput()[0]
	op := rewrite.Operator(node)
	if op == "Range" && d.isFloat(output) || op == "Cast" && d.isWide(node) && !d.isMask(node) {
		d.stayAs(node, "", true)
		d.counted[output] = d.isFloat(output) && (op == "Range" || d.typeOf(node.GetInput()[0]).IsInteger())
		return
	}
	limit := int64(0)
	switch op {
	case "MatMul", "Einsum", "Gemm":
		limit = fewWeights
	case "Abs", "Add", "Cast", "Ceil", "Clip", "Concat", "Cos", "Div", "Equal", "Exp", "Expand", "Floor", "Gather", "Greater",
		"GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Log", "Max", "Min", "Mod", "Mul", "Neg", "Pow", "Reciprocal", "Reshape",
		"Round", "Sin", "Slice", "Sqrt", "Squeeze", "Sub", "Tile", "Transpose", "Unsqueeze":
	default:
		return
	}
	some := false
	for _, name := range node.GetInput() {
		switch {
		case d.counted[name]:
			some = true
		case d.typeOf(name) == onnx.Float && !d.isConstant(name, limit):
			return
		}
	}
	if some {
		d.stayAs(node, counting, !isBounded(op))
		d.counted[output] = d.isFloat(output)
	}
}

// isWide reports whether a Cast converts numbers to FLOAT that may exceed fp16's range.
func (d *decision) isWide(node *onnxpb.NodeProto) bool {
	if len(node.GetInput()) != 1 || len(node.GetOutput()) != 1 || !d.isFloat(node.GetOutput()[0]) {
		return false
	}
	switch d.typeOf(node.GetInput()[0]) {
	case onnx.Int32, onnx.Int64, onnx.Uint16, onnx.Uint32, onnx.Uint64, onnx.Double, onnx.BFloat16:
		return true
	default:
		return false
	}
}

// isMask recognizes the Cast of a mask, whose values are 0 and 1, by its use: 1 - mask. Runtimes
// fuse the nodes from here to the softmax into an attention, so they must stay together.
func (d *decision) isMask(node *onnxpb.NodeProto) bool {
	consumers := d.consumers[node.GetOutput()[0]]
	for _, c := range consumers {
		if !rewrite.IsOp(c, "Sub") || len(c.GetInput()) != 2 || c.GetInput()[1] != node.GetOutput()[0] || !d.isConstant(c.GetInput()[0], 1) {
			return false
		}
	}
	return len(consumers) > 0
}
