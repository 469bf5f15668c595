package quantization

import (
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/shapes"
)

// foldNormalizations returns a clean model in which BatchNormalizations are folded into the
// convolutions before them. The BatchNormalization must be the convolution's only user.
//
// Weights and bias are computed in 64 bits. With a = scale/sqrt(variance+epsilon) per channel, the
// weights become a·w and the bias a·(b-mean)+shift (ONNX's definition of BatchNormalization). The
// convolution keeps its name. The result keeps the name of the normalisation's output.
func foldNormalizations(clean *onnx.Model) (*onnx.Model, error) {
	e := rewrite.NewEditor(clean)
	folded := map[*onnxpb.NodeProto]bool{}
	for _, node := range clean.Nodes() {
		if folded[node] {
			continue
		}
		n, ok := findNormalization(clean, node)
		if !ok {
			e.Keep(node)
			continue
		}
		folded[n.node] = true
		if err := n.fold(e); err != nil {
			return nil, err
		}
	}
	return e.Finish()
}

// normalization is a BatchNormalization after a convolution. All parameters of both are constant.
type normalization struct {
	convolution, node *onnxpb.NodeProto
	weight            rewrite.Constant
	bias              rewrite.Constant // its tensor is nil if the convolution has none
	parameters        [4]rewrite.Constant
	epsilon           float64
}

// findNormalization returns the normalization after a node if both can become one convolution.
func findNormalization(m *onnx.Model, node *onnxpb.NodeProto) (n normalization, ok bool) {
	if !rewrite.IsOp(node, "Conv") || len(node.GetInput()) < 2 || len(node.GetOutput()) != 1 {
		return n, false
	}
	n.convolution, n.node = node, onlyConsumer(m, node.GetOutput()[0])
	if !rewrite.IsOp(n.node, "BatchNormalization") || len(n.node.GetInput()) != 5 || len(n.node.GetOutput()) != 1 ||
		n.node.GetInput()[0] != node.GetOutput()[0] || onnx.Attribute(n.node, "training_mode").GetI() != 0 {
		return n, false
	}
	if n.weight, ok = rewrite.FindConstant(m, node.GetInput()[1]); !ok || !n.weight.IsFloat() || len(n.weight.Dims()) < 3 {
		return n, false
	}
	channels := n.weight.Dims()[0]
	if len(node.GetInput()) > 2 && node.GetInput()[2] != "" {
		if n.bias, ok = rewrite.FindConstant(m, node.GetInput()[2]); !ok || !isVector(n.bias, channels) {
			return n, false
		}
	}
	for i := range n.parameters {
		if n.parameters[i], ok = rewrite.FindConstant(m, n.node.GetInput()[i+1]); !ok || !isVector(n.parameters[i], channels) {
			return n, false
		}
	}
	n.epsilon = 1e-5
	if a := onnx.Attribute(n.node, "epsilon"); a != nil {
		n.epsilon = float64(a.GetF())
	}
	return n, true
}

func isVector(c rewrite.Constant, size int64) bool {
	return c.IsFloat() && len(c.Dims()) == 1 && c.Dims()[0] == size
}

// onlyConsumer returns the only node that uses a value, once and outside of subgraphs. It returns
// nil if there are other uses, or if the value is an output of the graph.
func onlyConsumer(m *onnx.Model, value string) *onnxpb.NodeProto {
	uses := m.Consumers(value)
	isOutput := slices.ContainsFunc(m.Outputs(), func(v onnx.Value) bool { return v.Name == value })
	if len(uses) != 1 || uses[0].Index < 0 || isOutput {
		return nil
	}
	return uses[0].Node
}

// fold writes the convolution with the folded normalisation.
func (n normalization) fold(e *rewrite.Editor) error {
	fail := func(err error) error {
		return fmt.Errorf("cannot fold the node %q into %q: %w", n.node.GetName(), n.convolution.GetName(), err)
	}
	weights, err := n.weight.Floats(e.Model)
	if err != nil {
		return fail(err)
	}
	var p [4][]float32 // scale, shift, mean, variance
	for i := range p {
		if p[i], err = n.parameters[i].Floats(e.Model); err != nil {
			return fail(err)
		}
	}
	bias := make([]float32, len(p[0]))
	if n.bias.Tensor != nil {
		if bias, err = n.bias.Floats(e.Model); err != nil {
			return fail(err)
		}
	}
	scaled, shifted := make([]float32, len(weights)), make([]float32, len(bias))
	for c := range bias {
		a := float64(p[0][c]) / math.Sqrt(float64(p[3][c])+n.epsilon)
		shifted[c] = float32(a*(float64(bias[c])-float64(p[2][c])) + float64(p[1][c]))
		size := len(weights) / len(bias)
		for i := c * size; i < (c+1)*size; i++ {
			scaled[i] = float32(a * float64(weights[i]))
		}
	}
	name := n.weight.Tensor.GetName()
	node := rewrite.Shallow(n.convolution)
	node.Input = []string{
		n.convolution.GetInput()[0],
		e.Constant(name+"_folded", onnx.Float, rewrite.FloatBytes(scaled), n.weight.Dims()...),
		e.Constant(name+"_folded_bias", onnx.Float, rewrite.FloatBytes(shifted), int64(len(shifted))),
	}
	node.Output = n.node.GetOutput()
	e.Keep(node)
	return nil
}

// joinBiases returns a clean model in which products with constant weights and a following constant
// bias become one Gemm. The sum with the bias, a constant row, must be the product's only user.
// ONNX Runtime can add a bias to the integers only in a Gemm. The Gemm keeps the product's name,
// the result that of the sum. Products with more dimensions stay, since Gemm does not accept them.
func joinBiases(clean *onnx.Model) (*onnx.Model, error) {
	infos, err := shapes.Infer(clean)
	if err != nil {
		return nil, err
	}
	e := rewrite.NewEditor(clean)
	joined := map[*onnxpb.NodeProto]*onnxpb.NodeProto{} // by the sum, in whose place all inputs are there
	for _, node := range clean.Nodes() {
		if gemm := joined[node]; gemm != nil {
			e.Keep(gemm)
			continue
		}
		sum, bias := findBias(clean, node)
		if a := infos[rewrite.FirstName(node.GetInput())]; sum == nil || !a.Ranked || len(a.Shape) != 2 {
			e.Keep(node)
			continue
		}
		joined[sum] = &onnxpb.NodeProto{
			Name: node.Name, OpType: proto.String("Gemm"), Input: append(slices.Clone(node.GetInput()), bias), Output: sum.GetOutput(),
		}
	}
	return e.Finish()
}

// findBias returns the node that adds a constant row to a MatMul with constant weights, and that
// row; nil without such a node.
func findBias(m *onnx.Model, node *onnxpb.NodeProto) (sum *onnxpb.NodeProto, bias string) {
	if !rewrite.IsOp(node, "MatMul") || len(node.GetInput()) != 2 || len(node.GetOutput()) != 1 {
		return nil, ""
	}
	weight, ok := rewrite.FindConstant(m, node.GetInput()[1])
	if !ok || !weight.IsFloat() || len(weight.Dims()) != 2 {
		return nil, ""
	}
	product := node.GetOutput()[0]
	sum = onlyConsumer(m, product)
	if !rewrite.IsOp(sum, "Add") || len(sum.GetInput()) != 2 || len(sum.GetOutput()) != 1 {
		return nil, ""
	}
	bias = sum.GetInput()[0]
	if bias == product {
		bias = sum.GetInput()[1]
	}
	row, ok := rewrite.FindConstant(m, bias)
	if !ok || !row.IsFloat() || !isRow(row.Dims(), weight.Dims()[1]) {
		return nil, ""
	}
	return sum, bias
}

// isRow reports whether a constant of that shape adds the same to each row of a matrix with that
// many columns.
func isRow(dims []int64, columns int64) bool {
	elements, ok := onnx.Elements(dims)
	return ok && len(dims) <= 2 && (elements == 1 || elements == columns && dims[len(dims)-1] == columns)
}
