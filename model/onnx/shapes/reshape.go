package shapes

import (
	"slices"

	"tuner/model/onnx"
)

// reshape computes the open sizes of the target from the input. 0 copies a size (unless allowzero
// is set). -1 stands for the remaining elements.
func reshape(n node) []Info {
	x := n.in(0)
	target, ok := n.reshapeTarget()
	if !ok {
		return one(typed(x.Type))
	}
	shape := make([]onnx.Dim, len(target))
	gap, gaps := -1, 0
	for i, v := range target {
		switch {
		case v == whole(0) && n.integer("allowzero", 0) == 0:
			if shape[i] = open(); x.Ranked && i < len(x.Shape) {
				shape[i] = x.Shape[i]
			}
		case v == whole(-1):
			shape[i] = open()
			gap, gaps = i, gaps+1
		default:
			shape[i] = v.dim()
			if isOpen(shape[i]) { // a number from another computation; the elements determine it too
				gap, gaps = i, gaps+1
			}
		}
	}
	if gaps == 1 && x.Ranked {
		shape[gap] = remainder(x.Shape, slices.Delete(slices.Clone(shape), gap, gap+1))
	}
	return one(known(x.Type, shape))
}

// reshapeTarget returns the target: an input, or before opset 5 an attribute.
func (n node) reshapeTarget() ([]number, bool) {
	if a := onnx.Attribute(n.NodeProto, "shape"); a != nil {
		return wholes(a.GetInts()), len(a.GetInts()) <= maxRank
	}
	if numbers, ok := n.numbers(1); ok {
		return numbers, len(numbers) <= maxRank
	}
	count, ok := n.count(1)
	return make([]number, count), ok
}

// remainder returns the size d for which all has as many elements as part and d together. Equal
// symbols cancel. The rest must be fixed numbers, or one symbol.
func remainder(all, part []onnx.Dim) onnx.Dim {
	product := onnx.Fixed(1)
	symbols := map[string]int{}
	left := 0 // remaining symbols, counted with their powers
	for _, d := range all {
		switch {
		case d.IsFixed():
			product = multiply(product, d)
		case isOpen(d):
			return open()
		default:
			symbols[d.Symbol]++
			left++
		}
	}
	divisor := onnx.Fixed(1)
	for _, d := range part {
		switch {
		case d.IsFixed():
			divisor = multiply(divisor, d)
		case isOpen(d) || symbols[d.Symbol] == 0:
			return open()
		default:
			symbols[d.Symbol]--
			left--
		}
	}
	switch {
	case !product.IsFixed() || !divisor.IsFixed() || divisor.Size == 0 || product.Size%divisor.Size != 0:
		return open()
	case left == 0:
		return onnx.Fixed(product.Size / divisor.Size)
	case left == 1 && product == divisor:
		for symbol, power := range symbols {
			if power == 1 {
				return onnx.Symbol(symbol)
			}
		}
	}
	return open()
}
