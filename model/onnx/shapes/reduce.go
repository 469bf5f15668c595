package shapes

import (
	"math"
	"slices"

	"tuner/model/onnx"
)

// reduceRule returns the rules of operators that reduce along axes, or select some elements.
func reduceRule(operator string) rule {
	switch operator {
	case "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
		"ReduceSumSquare":
		return reduce
	case "ArgMax", "ArgMin":
		return arg
	case "TopK":
		return topK
	case "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool":
		return globalPool
	case "NonZero":
		return nonZero
	case "NonMaxSuppression":
		return func(node) []Info { return one(known(onnx.Int64, []onnx.Dim{open(), onnx.Fixed(3)})) }
	case "Unique":
		return unique
	case "Shape":
		return shapeLength
	case "Size":
		return func(node) []Info { return one(known(onnx.Int64, nil)) }
	default:
		return nil
	}
}

// reduce reduces along the given axes, or along all.
func reduce(n node) []Info {
	x := n.in(0)
	keep := n.integer("keepdims", 1) != 0
	list, given, ok := n.listed(1, "axes")
	switch {
	case !x.Ranked || given && !ok:
		if x.Ranked && keep {
			return one(known(x.Type, openDims(len(x.Shape))))
		}
		return one(typed(x.Type))
	case len(list) == 0 && n.integer("noop_with_empty_axes", 0) != 0:
		return one(x)
	}
	axes, ok := positions(list, len(x.Shape))
	if !ok {
		return one(typed(x.Type))
	}
	return one(known(x.Type, without(x.Shape, axes, len(list) == 0, keep)))
}

// without sets the dimensions of some or all axes to 1, or removes them.
func without(dims []onnx.Dim, axes []int, all, keep bool) []onnx.Dim {
	var shape []onnx.Dim
	for i, d := range dims {
		switch reduced := all || slices.Contains(axes, i); {
		case !reduced:
			shape = append(shape, d)
		case keep:
			shape = append(shape, onnx.Fixed(1))
		}
	}
	return shape
}

func arg(n node) []Info {
	x := n.in(0)
	axis, ok := at(n.integer("axis", 0), len(x.Shape))
	if !x.Ranked || !ok {
		return one(typed(onnx.Int64))
	}
	return one(known(onnx.Int64, without(x.Shape, []int{axis}, false, n.integer("keepdims", 1) != 0)))
}

// topK returns values and indices. k is an attribute before opset 10.
func topK(n node) []Info {
	x := n.in(0)
	axis, ok := at(n.integer("axis", -1), len(x.Shape))
	if !x.Ranked || !ok {
		return []Info{typed(x.Type), typed(onnx.Int64)}
	}
	shape := slices.Clone(x.Shape)
	shape[axis] = open()
	if a := onnx.Attribute(n.NodeProto, "k"); a != nil {
		shape[axis] = sized(a.GetI())
	} else if k, ok := n.numbers(1); ok && len(k) == 1 {
		shape[axis] = k[0].dim()
	}
	return []Info{known(x.Type, shape), known(onnx.Int64, shape)}
}

func globalPool(n node) []Info {
	x := n.in(0)
	if !x.Ranked || len(x.Shape) < 2 {
		return one(typed(x.Type))
	}
	shape := slices.Clone(x.Shape)
	for i := 2; i < len(shape); i++ {
		shape[i] = onnx.Fixed(1)
	}
	return one(known(x.Type, shape))
}

// nonZero returns a row for each dimension, and a column for each element found. A scalar has one
// row.
func nonZero(n node) []Info {
	x := n.in(0)
	rows := open()
	if x.Ranked && len(x.Shape) > 0 {
		rows = onnx.Fixed(int64(len(x.Shape)))
	}
	return one(known(onnx.Int64, []onnx.Dim{rows, open()}))
}

// unique returns the distinct elements (or slices along an axis), and three lists of indices and
// counts.
func unique(n node) []Info {
	x := n.in(0)
	list := known(onnx.Int64, openDims(1))
	infos := []Info{known(x.Type, openDims(1)), list, list, list}
	a := onnx.Attribute(n.NodeProto, "axis")
	if a == nil {
		return infos
	}
	infos[0] = typed(x.Type)
	if axis, ok := at(a.GetI(), len(x.Shape)); x.Ranked && ok {
		shape := slices.Clone(x.Shape)
		shape[axis] = open()
		infos[0] = known(x.Type, shape)
	}
	return infos
}

// shapeLength infers Shape: a list with one number for each dimension, or for some of them.
func shapeLength(n node) []Info {
	x := n.in(0)
	if !x.Ranked {
		return one(known(onnx.Int64, openDims(1)))
	}
	start, end := clampIndex(n.integer("start", 0), len(x.Shape)), clampIndex(n.integer("end", math.MaxInt64), len(x.Shape))
	return one(known(onnx.Int64, []onnx.Dim{onnx.Fixed(int64(max(end-start, 0)))}))
}
