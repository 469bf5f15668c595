package shapes

import (
	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// node is a node with what is known of its inputs.
type node struct {
	*onnxpb.NodeProto
	scope *scope
}

// rule infers the outputs of a node, as far as it can: fewer infos than outputs, or empty ones, leave the rest unknown.
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

// operator returns the operator with its domain in front, unless that is ONNX's own.
func (n node) operator() string {
	switch d := n.GetDomain(); d {
	case "", "ai.onnx":
		return n.GetOpType()
	default:
		return d + "." + n.GetOpType()
	}
}

// ruleOf returns the rule of an operator, nil when this package doesn't know it.
func ruleOf(operator string) rule {
	for _, family := range []func(string) rule{elementRule, moveRule, reduceRule, windowRule, productRule, makeRule, quantizeRule} {
		if r := family(operator); r != nil {
			return r
		}
	}
	return nil
}

// opset is the version of ONNX's own operator set that the model uses.
func (n node) opset() int64 { return n.scope.model.Opset("") }

// has reports whether the node has its i-th input.
func (n node) has(i int) bool { return i < len(n.GetInput()) && n.GetInput()[i] != "" }

// in returns what is known of the i-th input.
func (n node) in(i int) Info {
	if !n.has(i) {
		return Info{}
	}
	return n.scope.info(n.GetInput()[i])
}

// numbers returns the elements of the i-th input, a small tensor of whole numbers.
func (n node) numbers(i int) ([]number, bool) {
	if !n.has(i) {
		return nil, false
	}
	return n.scope.values(n.GetInput()[i])
}

// wholes returns the elements of the i-th input when all are known.
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

// maxRank bounds the number of dimensions that a computed shape may have; ONNX Runtime's kernels take far fewer.
const maxRank = 64

// integer returns an attribute, or the value that it has when it is absent.
func (n node) integer(name string, absent int64) int64 {
	if a := onnx.Attribute(n.NodeProto, name); a != nil {
		return a.GetI()
	}
	return absent
}

func (n node) integers(name string) []int64 { return onnx.Attribute(n.NodeProto, name).GetInts() }

func (n node) text(name string) string { return string(onnx.Attribute(n.NodeProto, name).GetS()) }

// listed returns the whole numbers that an operator takes as the i-th input since some version, and before as an attribute.
// given is false when the node has neither; ok when the numbers are known.
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

// one is the result of an operator with one output.
func one(info Info) []Info { return []Info{info} }

// like is the rule of operators whose output is as their first input.
func like(n node) []Info { return one(n.in(0)) }
