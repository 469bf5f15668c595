package shapes

import (
	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// node is a node with the known types and shapes of its inputs.
type node struct {
	*onnxpb.NodeProto
	scope *scope
}

// rule infers the outputs of a node. Outputs are unknown if the result has too few infos, or empty
// ones.
type rule func(n node) []Info

// outputs applies the rule of the node's operator.
func (n node) outputs() ([]Info, error) {
	if len(onnx.Subgraphs(n.NodeProto)) > 0 {
		return n.control()
	}
	if r := ruleOf(n.operator()); r != nil {
		return r(n), nil
	}
	return nil, nil
}

// operator returns the operator with its domain as a prefix, unless that is ONNX's own.
func (n node) operator() string {
	switch d := n.GetDomain(); d {
	case "", "ai.onnx":
		return n.GetOpType()
	default:
		return d + "." + n.GetOpType()
	}
}

// ruleOf returns the rule of an operator, and nil for an unknown operator.
func ruleOf(operator string) rule {
	for _, family := range []func(string) rule{elementRule, moveRule, reduceRule, windowRule, productRule, makeRule, quantizeRule} {
		if r := family(operator); r != nil {
			return r
		}
	}
	return nil
}

// opset returns the model's version of ONNX's own operator set.
func (n node) opset() int64 { return n.scope.model.Opset("") }

// has reports whether the node has its i-th input.
func (n node) has(i int) bool { return i < len(n.GetInput()) && n.GetInput()[i] != "" }

// in returns the known type and shape of the i-th input.
func (n node) in(i int) Info {
	if !n.has(i) {
		return Info{}
	}
	return n.scope.info(n.GetInput()[i])
}

// numbers returns the elements of the i-th input if it is a small integer tensor.
func (n node) numbers(i int) ([]number, bool) {
	if !n.has(i) {
		return nil, false
	}
	return n.scope.values(n.GetInput()[i])
}

// wholes returns the elements of the i-th input if all are known.
func (n node) wholes(i int) ([]int64, bool) {
	numbers, ok := n.numbers(i)
	if !ok {
		return nil, false
	}
	return allKnown(numbers)
}

// count returns the number of elements of the i-th input, which has one dimension.
func (n node) count(i int) (int, bool) {
	info := n.in(i)
	if !info.Ranked || len(info.Shape) != 1 || !info.Shape[0].IsFixed() || info.Shape[0].Size > maxRank {
		return 0, false
	}
	return int(info.Shape[0].Size), true
}

// maxRank limits the number of dimensions of a computed shape. ONNX Runtime's kernels support far
// fewer.
const maxRank = 64

// integer returns an attribute, or the default if it is absent.
func (n node) integer(name string, absent int64) int64 {
	if a := onnx.Attribute(n.NodeProto, name); a != nil {
		return a.GetI()
	}
	return absent
}

func (n node) integers(name string) []int64 { return onnx.Attribute(n.NodeProto, name).GetInts() }

func (n node) text(name string) string { return string(onnx.Attribute(n.NodeProto, name).GetS()) }

// listed returns the integers that an operator takes as the i-th input since some version, and
// before that as an attribute. given is false if the node has neither. ok is true if the numbers
// are known.
func (n node) listed(i int, attribute string) (list []int64, given, ok bool) {
	if a := onnx.Attribute(n.NodeProto, attribute); a != nil {
		return a.GetInts(), true, true
	}
	if !n.has(i) {
		return nil, false, false
	}
	list, ok = n.wholes(i)
	return list, true, ok
}

// one returns the result of an operator with one output.
func one(info Info) []Info { return []Info{info} }

// like is the rule of operators whose output has the type and shape of their first input.
func like(n node) []Info { return one(n.in(0)) }
