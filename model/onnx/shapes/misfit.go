package shapes

import (
	"cmp"

	"tuner/model/onnx"
)

// Misfit is a Reshape that fails: the fixed sizes of its target do not divide its input's elements.
type Misfit struct {
	Node     string // the node's name, or that of its output
	Elements int64  // of the input
	Divisor  int64  // product of the target's fixed sizes
}

// FindMisfit returns the first Reshape of the main graph that certainly fails for inputs of the given
// shapes, by the input's name. An input without one keeps its declaration. found is false if
// nothing is certain, which does not mean that the model runs.
func FindMisfit(m *onnx.Model, given map[string][]onnx.Dim) (misfit Misfit, found bool) {
	var inputs []Info
	declared := map[string]onnx.Value{}
	for _, v := range m.Inputs() {
		declared[v.Name] = v
	}
	for _, v := range m.Graph().GetInput() {
		var info Info
		if shape, ok := given[v.GetName()]; ok {
			info = known(declared[v.GetName()].Type, shape)
		}
		inputs = append(inputs, info)
	}
	main := newScope(m)
	if main.infer(inputs) != nil {
		return misfit, false // inference says why elsewhere
	}
	for _, proto := range m.Graph().GetNode() {
		n := node{proto, main}
		if n.operator() != "Reshape" || len(proto.GetOutput()) == 0 {
			continue
		}
		if elements, divisor, ok := n.division(); ok && elements%divisor != 0 {
			return Misfit{cmp.Or(proto.GetName(), proto.GetOutput()[0]), elements, divisor}, true
		}
	}
	return misfit, false
}

// division returns the number of elements that a Reshape has, and the product of its target's fixed
// sizes. ok is false if they are not certain, or 0.
func (n node) division() (elements, divisor int64, ok bool) {
	x := n.in(0)
	target, ok := n.reshapeTarget()
	if !x.Ranked || !ok {
		return 0, 0, false
	}
	fixed := make([]onnx.Dim, 0, len(target))
	for i, v := range target {
		switch {
		case v == whole(-1):
		case v != whole(0):
			fixed = append(fixed, v.dim())
		case n.integer("allowzero", 0) == 0 && i < len(x.Shape):
			fixed = append(fixed, x.Shape[i])
		default:
			return 0, 0, false
		}
	}
	all, part := multiply(x.Shape...), multiply(fixed...)
	return all.Size, part.Size, all.IsFixed() && part.IsFixed() && all.Size > 0 && part.Size > 0
}
