// Package quantization converts the products and convolutions of a model to 8-bit integers, with
// ranges that each run finds (Dynamic) or that a calibration gives (Static). It edits models with
// package rewrite. It also makes the models that measure how much each node loses (Sensitivity). It
// does not run a model, and does not choose the nodes that stay in 32 bits.
package quantization

import (
	"fmt"
	"slices"
	"strings"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
)

// Options configure how weights become 8-bit integers.
type Options struct {
	// PerTensor gives a weight one scale instead of one per output column. The file gets slightly
	// smaller, and the model much less accurate.
	PerTensor bool
	// Bits is the number of bits of a weight: 8 (0 means 8), or 7. Processors without VNNI or AMX
	// need 7, since their 16-bit sums of two products saturate.
	Bits int
	// Keep names nodes that are not converted.
	Keep []string
}

// dynamicTarget is the name of Dynamic's result in messages.
const dynamicTarget = "int8"

// dynamicOpset is the first opset with DynamicQuantizeLinear.
const dynamicOpset = 11

// Dynamic converts products with constant weights (MatMul and Gemm) to 8-bit integers. Weights
// are quantized now, activations in each run by their own range. Convolutions stay, since they
// would become slower, and so do embedding tables. The error wraps ErrNothing if no node can be
// converted. Other errors name an invalid node or weight, or say that the model's operator set is
// too old.
//
// ONNX Runtime fuses the nodes into DynamicQuantizeMatMul and MatMulIntegerToFloat. They are
// DynamicQuantizeLinear (one for all users of an activation), MatMulInteger, Cast, and Mul by the
// product of the scales. The activation's scale comes first: in the other order, fewer nodes are
// fused.
//
// A weight always has a zero point, although it is 0. Without it, ONNX Runtime 1.27 aborts under
// session.x64quantprecision. 1.31 refuses one that weights share. The zero point is one number, not
// one per column, which makes the products about 15 % faster (ONNX Runtime 1.31, AVX512-VNNI).
func Dynamic(m *onnx.Model, o Options) (*onnx.Model, rewrite.Summary, error) {
	q, products, err := newDynamic(m, o)
	if err != nil {
		return nil, q.summary, err
	}
	next := 0 // products are in the order of the nodes
	for _, node := range q.Nodes() {
		if next == len(products) || products[next].node != node {
			q.Keep(node)
			continue
		}
		if err := q.convert(products[next], node.GetOutput()[0]); err != nil {
			return nil, q.summary, err
		}
		q.summary.Converted = append(q.summary.Converted, node.GetName())
		next++
	}
	converted, err := q.Finish()
	return converted, q.summary, err
}

// dynamic converts products. Activations and weights that several products share are quantized
// once.
type dynamic struct {
	*rewrite.Editor
	options     Options
	activations map[string]quantized
	weights     map[weightKey]quantized
	summary     rewrite.Summary
}

// quantized has the names of the parts of a quantized value.
type quantized struct{ values, scale, zero string }

// weightKey identifies a weight. One tensor may be used both directly and transposed.
type weightKey struct {
	tensor     string
	transposed bool
}

// newDynamic cleans a model and finds its convertible products. The summary is complete even if
// there are none.
func newDynamic(m *onnx.Model, o Options) (*dynamic, []product, error) {
	q := &dynamic{options: o, activations: map[string]quantized{}, weights: map[weightKey]quantized{}}
	if o.Bits != 0 && o.Bits != 7 && o.Bits != 8 {
		return q, nil, fmt.Errorf("cannot convert the model to %s: weights of %d bits are not possible; choose 7 or 8", dynamicTarget, o.Bits)
	}
	clean, err := rewrite.Clean(m)
	if err != nil {
		return q, nil, err
	}
	if err := rewrite.CheckKeep(clean, dynamicTarget, o.Keep); err != nil {
		return q, nil, err
	}
	if node := findQuantized(clean.Graph()); node != nil {
		return q, nil, rewrite.Nothing(dynamicTarget, fmt.Sprintf("it is quantized already (the node %q is a %s); convert the model as it was before quantization", node.GetName(), node.GetOpType()))
	}
	products, kept := findProducts(clean, o.Keep)
	q.summary.Kept = kept
	if len(products) == 0 {
		return q, nil, rewrite.Nothing(dynamicTarget, whyNone(kept))
	}
	if err := rewrite.CheckOpset(clean, dynamicTarget, dynamicOpset); err != nil {
		return q, nil, err
	}
	q.Editor = rewrite.NewEditor(clean)
	return q, products, nil
}

// whyNone explains why no product can be converted.
func whyNone(kept []rewrite.Kept) string {
	if len(kept) == 0 {
		return "it has no MatMul or Gemm with constant weights"
	}
	return fmt.Sprintf("none of its %d products with constant weights can be converted; the first, %s %q: %s",
		len(kept), kept[0].Op, kept[0].Node, kept[0].Reason)
}

// findQuantized returns a node that computes in integers or decodes them, also in subgraphs; nil
// without one.
func findQuantized(g *onnxpb.GraphProto) *onnxpb.NodeProto {
	for _, node := range g.GetNode() {
		if isQuantized(node) {
			return node
		}
		for _, sub := range onnx.Subgraphs(node) {
			if inner := findQuantized(sub); inner != nil {
				return inner
			}
		}
	}
	return nil
}

// isQuantized recognizes quantized operators by parts of their names: those of ONNX (QLinearConv,
// MatMulInteger …) and of ONNX Runtime (QGemm, DynamicQuantizeMatMul, MatMulNBits,
// GatherBlockQuantized …).
func isQuantized(node *onnxpb.NodeProto) bool {
	op := node.GetOpType()
	switch {
	case rewrite.IsDefaultDomain(node.GetDomain()):
		return strings.HasSuffix(op, "QuantizeLinear") || strings.HasSuffix(op, "DequantizeLinear") ||
			strings.HasPrefix(op, "QLinear") || op == "MatMulInteger" || op == "ConvInteger"
	case node.GetDomain() == "com.microsoft":
		return strings.Contains(strings.ToLower(op), "quantize") || strings.HasPrefix(op, "QLinear") || strings.HasPrefix(op, "MatMulInteger") ||
			slices.Contains([]string{"QGemm", "QAttention", "QEmbedLayerNormalization", "QMoE", "MatMulNBits", "MatMulBnb4"}, op)
	default:
		return false
	}
}

// convert writes the integer form of a product. Its result gets the name output.
func (q *dynamic) convert(p product, output string) error {
	b, err := q.weight(p)
	if err != nil {
		return err
	}
	a := q.activation(p.activation)
	name := p.node.GetName()
	sum := q.Compute("MatMulInteger", name+"_MatMulInteger", []string{a.values, b.values, a.zero, b.zero})
	float := q.Compute("Cast", name+"_Cast", []string{sum}, rewrite.IntAttribute("to", int64(onnx.Float)))
	scale := q.Compute("Mul", name+"_scales", []string{a.scale, b.scale})
	if p.bias == "" {
		q.AddNode("Mul", name+"_Mul", []string{float, scale}, []string{output})
		return nil
	}
	scaled := q.Compute("Mul", name+"_Mul", []string{float, scale})
	q.AddNode("Add", name+"_Add", []string{scaled, p.bias}, []string{output})
	return nil
}

// activation quantizes a computed value.
func (q *dynamic) activation(value string) quantized {
	if a, done := q.activations[value]; done {
		return a
	}
	a := quantized{q.Used.Fresh(value + "_quantized"), q.Used.Fresh(value + "_scale"), q.Used.Fresh(value + "_zero_point")}
	q.AddNode("DynamicQuantizeLinear", value+"_DynamicQuantizeLinear", []string{value}, []string{a.values, a.scale, a.zero})
	q.activations[value] = a
	return a
}

// weight quantizes the constant of a product.
func (q *dynamic) weight(p product) (quantized, error) {
	name := p.weight.Tensor.GetName()
	key := weightKey{name, p.weight.Transposed}
	if w, done := q.weights[key]; done {
		return w, nil
	}
	values, err := p.weight.Floats(q.Model)
	if err != nil {
		return quantized{}, fmt.Errorf("cannot convert the node %q to %s: %w", p.node.GetName(), dynamicTarget, err)
	}
	denormal, err := checkFinite(name, values)
	if err != nil {
		return quantized{}, fmt.Errorf("cannot convert the node %q to %s: %w", p.node.GetName(), dynamicTarget, err)
	}
	if denormal > 0 {
		q.summary.Notes = append(q.summary.Notes, fmt.Sprintf("the weight %q has %d denormal numbers (below 1.2e-38): "+
			"they become 0 in int8; in fp32 they can slow its products down a hundredfold", name, denormal))
	}
	raw, scales, scaleDims := q.quantize(values, p.weight.Dims())
	w := quantized{
		values: q.Constant(name+"_quantized", onnx.Int8, raw, p.weight.Dims()...),
		scale:  q.Constant(name+"_scale", onnx.Float, rewrite.FloatBytes(scales), scaleDims...),
		zero:   q.Constant(name+"_zero_point", onnx.Int8, []byte{0}),
	}
	q.weights[key] = w
	return w, nil
}

// quantize quantizes a matrix, or a batch of matrices, with one scale per column or one in total.
// The scales have the shape that ONNX Runtime's MatMulInteger accepts: [N] for a matrix, […, 1, N]
// for a batch.
func (q *dynamic) quantize(values []float32, dims []int64) (raw []byte, scales []float32, scaleDims []int64) {
	limit := int8(127)
	if q.options.Bits == 7 {
		limit = 64
	}
	if q.options.PerTensor {
		raw, scales = quantizeSymmetric(values, limit, 1, func(int) int { return 0 })
		return raw, scales, nil
	}
	rank := len(dims)
	rows, columns := int(dims[rank-2]), int(dims[rank-1])
	scaleDims = []int64{dims[rank-1]}
	if rank > 2 {
		scaleDims = append(append(slices.Clone(dims[:rank-2]), 1), dims[rank-1])
	}
	matrix := rows * columns
	raw, scales = quantizeSymmetric(values, limit, len(values)/rows, func(i int) int { return i/matrix*columns + i%columns })
	return raw, scales, scaleDims
}
