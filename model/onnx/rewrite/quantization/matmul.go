package quantization

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/shapes"
)

// product is a MatMul or Gemm with a constant second operand.
type product struct {
	node       *onnxpb.NodeProto
	activation string // name of the first operand
	weight     rewrite.Constant
	bias       string // the addend of a Gemm; "" without one
}

// findProducts lists, in graph order, the products of a clean model that can be computed in
// integers. kept are the candidates that cannot: products whose weights a person would expect to be
// quantized.
func findProducts(m *onnx.Model, keep []string) (found []product, kept []rewrite.Kept) {
	infos := sync.OnceValue(func() map[string]shapes.Info {
		infos, _ := shapes.Infer(m) // without them, no rank is known
		return infos
	})
	for _, node := range m.Nodes() {
		p, reason, candidate := examine(m, node)
		if candidate && reason == "" {
			switch {
			case slices.Contains(keep, node.GetName()):
				reason = rewrite.KeptOnRequest
			case p.isBatched() && len(infos()[p.activation].Shape) < 2:
				reason = "its weight has several matrices, and its first operand is a vector or has no known rank"
			}
		}
		switch {
		case candidate && reason == "":
			found = append(found, p)
		case candidate:
			kept = append(kept, rewrite.Kept{Node: node.GetName(), Op: node.GetOpType(), Reason: reason})
		}
		kept = append(kept, innerProducts(m, node)...)
	}
	return found, kept
}

// innerProducts lists the products with constant weights in the subgraphs of a node of m's main
// graph. Names are unique in the whole model, so one set holds the constants of all subgraphs.
func innerProducts(m *onnx.Model, node *onnxpb.NodeProto) []rewrite.Kept {
	var kept []rewrite.Kept
	own := map[string]bool{}
	var search func(path string, g *onnxpb.GraphProto)
	search = func(path string, g *onnxpb.GraphProto) {
		for _, t := range g.GetInitializer() {
			own[t.GetName()] = true
		}
		for _, node := range g.GetNode() {
			name := path + "/" + node.GetName()
			in := node.GetInput()
			switch {
			case rewrite.IsOp(node, "Constant") && len(node.GetOutput()) == 1:
				own[node.GetOutput()[0]] = true
			case (rewrite.IsOp(node, "MatMul") || rewrite.IsOp(node, "Gemm")) && len(in) > 1 && (own[in[1]] || m.Initializer(in[1]) != nil):
				kept = append(kept, rewrite.Kept{Node: name, Op: node.GetOpType(), Reason: "it is inside a subgraph, which is left alone"})
			}
			for _, sub := range onnx.Subgraphs(node) {
				search(name, sub)
			}
		}
	}
	for _, g := range onnx.Subgraphs(node) {
		search(node.GetName(), g)
	}
	return kept
}

// examine reports whether a node is a candidate. For a candidate it returns the product, or the
// reason why it cannot be converted.
func examine(m *onnx.Model, node *onnxpb.NodeProto) (p product, reason string, candidate bool) {
	if isFused(m, node) {
		return p, "it is a fused operator of ONNX Runtime; convert the model as it was exported, before such optimisations", true
	}
	if !rewrite.IsOp(node, "MatMul") && !rewrite.IsOp(node, "Gemm") || len(node.GetInput()) < 2 || len(node.GetOutput()) != 1 {
		return p, "", false
	}
	p = product{node: node, activation: node.GetInput()[0]}
	left, leftConstant := rewrite.FindConstant(m, p.activation)
	weight, rightConstant := rewrite.FindConstant(m, node.GetInput()[1])
	switch {
	case leftConstant == rightConstant: // both vary, or both are constant, and ONNX Runtime multiplies them once
		return p, "", false
	case leftConstant && left.IsFloat():
		return p, "its constant is the first operand; only a constant second operand is converted", true
	case leftConstant || !onnx.DataType(weight.Tensor.GetDataType()).IsFloat():
		return p, "", false
	}
	p.weight = weight
	if rewrite.IsOp(node, "Gemm") {
		if reason = p.takeGemm(); reason != "" {
			return p, reason, true
		}
	}
	return p, p.obstacle(), true
}

// isFused reports whether a node is one of ONNX Runtime's fused products with constant weights.
func isFused(m *onnx.Model, node *onnxpb.NodeProto) bool {
	fused := node.GetDomain() == "com.microsoft" && slices.Contains([]string{"Attention", "FusedMatMul", "FusedGemm"}, node.GetOpType())
	return fused && len(node.GetInput()) > 1 && m.Initializer(node.GetInput()[1]) != nil
}

// takeGemm reads a Gemm's other parameters. It returns a reason if MatMul and Add cannot express
// them.
func (p *product) takeGemm() (reason string) {
	number := func(name string) float32 {
		if a := onnx.Attribute(p.node, name); a != nil {
			return a.GetF()
		}
		return 1
	}
	if in := p.node.GetInput(); len(in) > 2 {
		p.bias = in[2]
	}
	switch alpha, beta := number("alpha"), number("beta"); {
	case alpha != 1:
		return fmt.Sprintf("its alpha is %v; only 1 is converted", alpha)
	case p.bias != "" && beta != 1:
		return fmt.Sprintf("its beta is %v; only 1 is converted", beta)
	case onnx.Attribute(p.node, "transA").GetI() != 0:
		return "it transposes its first operand (transA)"
	case len(p.weight.Tensor.GetDims()) != 2:
		return "its weight is not a matrix"
	}
	if onnx.Attribute(p.node, "transB").GetI() != 0 {
		p.weight.Transposed = !p.weight.Transposed
	}
	return ""
}

// isBatched reports whether the weight is a batch of matrices. Its scales have the shape […, 1, N],
// which fits a product with rows only: the product of a vector has the shape […, N].
func (p *product) isBatched() bool { return len(p.weight.Dims()) > 2 }

// largestRows is the number of products of 8-bit numbers whose sum always fits into 32 bits:
// 255·127·66311 < 2^31.
const largestRows = math.MaxInt32 / (math.MaxUint8 * math.MaxInt8)

// obstacle returns the reason why the weight cannot be quantized; "" if it can.
func (p *product) obstacle() string {
	dims := p.weight.Dims()
	elements, _ := onnx.Elements(dims)
	switch {
	case !p.weight.IsFloat():
		return fmt.Sprintf("its weight is %s; only FLOAT is converted", onnx.DataType(p.weight.Tensor.GetDataType()))
	case len(dims) < 2:
		return "its weight is a vector"
	case elements == 0:
		return "its weight is empty"
	case dims[len(dims)-2] > largestRows:
		return fmt.Sprintf("its weight has %d rows; the sum of more than %d products can exceed 32 bits", dims[len(dims)-2], largestRows)
	}
	return ""
}
