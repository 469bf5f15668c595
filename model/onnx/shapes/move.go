package shapes

import (
	"math"
	"slices"

	"tuner/model/onnx"
)

// moveRule returns the rules of operators that only move elements.
func moveRule(operator string) rule {
	switch operator {
	case "Reshape":
		return reshape
	case "Flatten":
		return flatten
	case "Transpose":
		return transpose
	case "Squeeze":
		return squeeze
	case "Unsqueeze":
		return unsqueeze
	case "Concat":
		return concat
	case "Split":
		return split
	case "Slice":
		return slice
	case "Gather":
		return gather
	case "GatherElements":
		return func(n node) []Info { return one(withType(n.in(1), n.in(0).Type)) }
	case "GatherND":
		return gatherND
	case "Expand":
		return expand
	case "Tile":
		return tile
	case "Pad":
		return pad
	case "DepthToSpace", "SpaceToDepth":
		return blocks
	case "Compress":
		return compress
	default:
		return nil
	}
}

// transpose reverses or permutes the dimensions.
func transpose(n node) []Info {
	x := n.in(0)
	if !x.Ranked {
		return one(typed(x.Type))
	}
	perm := n.integers("perm")
	shape := slices.Clone(x.Shape)
	if perm == nil {
		slices.Reverse(shape)
		return one(known(x.Type, shape))
	}
	axes, ok := positions(perm, len(shape))
	if !ok || len(axes) != len(shape) {
		return one(typed(x.Type))
	}
	for i, axis := range axes {
		shape[i] = x.Shape[axis]
	}
	return one(known(x.Type, shape))
}

// flatten makes a matrix from the dimensions before the axis and those from it on.
func flatten(n node) []Info {
	x := n.in(0)
	axis := n.integer("axis", 1)
	if axis < 0 {
		axis += int64(len(x.Shape))
	}
	if !x.Ranked || axis < 0 || axis > int64(len(x.Shape)) {
		return one(known(x.Type, openDims(2)))
	}
	return one(known(x.Type, []onnx.Dim{multiply(x.Shape[:axis]...), multiply(x.Shape[axis:]...)}))
}

func squeeze(n node) []Info {
	x := n.in(0)
	list, given, ok := n.listed(1, "axes")
	if !x.Ranked || given && !ok {
		return one(typed(x.Type))
	}
	var shape []onnx.Dim
	if !given { // all dimensions of size 1 are removed; which ones is only known if all sizes are
		for _, d := range x.Shape {
			if !d.IsFixed() {
				return one(typed(x.Type))
			}
			if d.Size != 1 {
				shape = append(shape, d)
			}
		}
		return one(known(x.Type, shape))
	}
	axes, ok := positions(list, len(x.Shape))
	if !ok {
		return one(typed(x.Type))
	}
	for i, d := range x.Shape {
		if !slices.Contains(axes, i) {
			shape = append(shape, d)
		}
	}
	return one(known(x.Type, shape))
}

func unsqueeze(n node) []Info {
	x := n.in(0)
	list, _, ok := n.listed(1, "axes")
	if !x.Ranked || !ok || len(list)+len(x.Shape) > maxRank {
		return one(typed(x.Type))
	}
	axes, ok := positions(list, len(x.Shape)+len(list))
	slices.Sort(axes)
	if !ok || len(slices.Compact(slices.Clone(axes))) != len(axes) {
		return one(typed(x.Type))
	}
	shape := slices.Clone(x.Shape)
	for _, axis := range axes {
		shape = slices.Insert(shape, axis, onnx.Fixed(1))
	}
	return one(known(x.Type, shape))
}

// concat joins along an axis. The other sizes must be equal.
func concat(n node) []Info {
	t := n.firstType(0)
	x := n.in(0)
	axis, ok := at(n.integer("axis", 1), len(x.Shape))
	if !x.Ranked || !ok {
		return one(typed(t))
	}
	shape := slices.Clone(x.Shape)
	along := []onnx.Dim{shape[axis]}
	for i := 1; i < len(n.GetInput()); i++ {
		next := n.in(i)
		if !next.Ranked || len(next.Shape) != len(shape) {
			along = append(along, open(), open()) // two, so that the sum is open for all other sizes
			continue
		}
		along = append(along, next.Shape[axis])
		for k := range shape {
			shape[k] = either(shape[k], next.Shape[k])
		}
	}
	shape[axis] = sum(along...)
	return one(known(t, shape))
}

// split cuts into parts of the given sizes, or into equal parts. Since opset 18 the last part may
// be smaller.
func split(n node) []Info {
	x := n.in(0)
	parts := make([]Info, len(n.GetOutput()))
	axis, ok := at(n.integer("axis", 0), len(x.Shape))
	if !x.Ranked || !ok {
		for i := range parts {
			parts[i] = typed(x.Type)
		}
		return parts
	}
	sizes, given, ok := n.listed(1, "split")
	whole, count := x.Shape[axis], int64(len(parts))
	for i := range parts {
		shape := slices.Clone(x.Shape)
		shape[axis] = open()
		switch {
		case given && ok && len(sizes) == len(parts):
			shape[axis] = sized(sizes[i])
		case !given && whole.IsFixed() && whole.Size%count == 0:
			shape[axis] = sized(whole.Size / count)
		case !given && count == 1:
			shape[axis] = whole
		}
		parts[i] = known(x.Type, shape)
	}
	return parts
}

// gather replaces a dimension by those of the indices.
func gather(n node) []Info {
	x, index := n.in(0), n.in(1)
	axis, ok := at(n.integer("axis", 0), len(x.Shape))
	if !x.Ranked || !index.Ranked || !ok || len(x.Shape)+len(index.Shape) > maxRank {
		return one(typed(x.Type))
	}
	return one(known(x.Type, slices.Concat(x.Shape[:axis], index.Shape, x.Shape[axis+1:])))
}

// gatherND uses the last dimension of the indices as coordinates.
func gatherND(n node) []Info {
	x, index := n.in(0), n.in(1)
	batch := n.integer("batch_dims", 0)
	if !x.Ranked || !index.Ranked || len(index.Shape) == 0 || batch < 0 {
		return one(typed(x.Type))
	}
	last := index.Shape[len(index.Shape)-1]
	if !last.IsFixed() || last.Size > maxRank || batch > maxRank || batch+last.Size > int64(len(x.Shape)) {
		return one(typed(x.Type))
	}
	return one(known(x.Type, slices.Concat(index.Shape[:len(index.Shape)-1], x.Shape[batch+last.Size:])))
}

func expand(n node) []Info {
	x := n.in(0)
	target, ok := n.target(1)
	if !x.Ranked || !ok {
		return one(typed(x.Type))
	}
	return one(known(x.Type, broadcast(x.Shape, target)))
}

// target returns the shape that the i-th input holds. ok is false if even the number of dimensions
// is unknown.
func (n node) target(i int) (shape []onnx.Dim, ok bool) {
	if numbers, ok := n.numbers(i); ok {
		if len(numbers) > maxRank {
			return nil, false
		}
		shape = make([]onnx.Dim, len(numbers))
		for k, v := range numbers {
			shape[k] = v.dim()
		}
		return shape, true
	}
	count, ok := n.count(i)
	return openDims(count), ok
}

func tile(n node) []Info {
	x := n.in(0)
	repeats, ok := n.target(1)
	if !x.Ranked {
		return one(typed(x.Type))
	}
	if !ok || len(repeats) != len(x.Shape) {
		return one(known(x.Type, openDims(len(x.Shape))))
	}
	shape := slices.Clone(x.Shape)
	for i := range shape {
		shape[i] = multiply(shape[i], repeats[i])
	}
	return one(known(x.Type, shape))
}

func pad(n node) []Info {
	x := n.in(0)
	pads, given, ok := n.listed(1, "pads")
	if !x.Ranked {
		return one(typed(x.Type))
	}
	axes := make([]int, len(x.Shape))
	for i := range axes {
		axes[i] = i
	}
	if n.has(3) {
		list, okAxes := n.wholes(3)
		all, inside := positions(list, len(x.Shape))
		axes, ok = all, ok && okAxes && inside
	}
	if !given || !ok || len(pads) != 2*len(axes) {
		return one(known(x.Type, openDims(len(x.Shape))))
	}
	shape := slices.Clone(x.Shape)
	for i, axis := range axes {
		before, after := pads[i], pads[i+len(axes)]
		switch {
		case before == 0 && after == 0:
		case shape[axis].IsFixed() && small(before) && small(after):
			shape[axis] = sized(shape[axis].Size + before + after)
		default:
			shape[axis] = open()
		}
	}
	return one(known(x.Type, shape))
}

// small reports whether sums and products of a few such numbers cannot overflow.
func small(v int64) bool { return v > math.MinInt32 && v < math.MaxInt32 }

// blocks moves a depth of blocksize² per pixel into a block of pixels, or back.
func blocks(n node) []Info {
	x := n.in(0)
	b := n.integer("blocksize", 0)
	if !x.Ranked || len(x.Shape) != 4 || b <= 0 || !small(b) {
		return one(typed(x.Type))
	}
	grow := func(d onnx.Dim, by int64) onnx.Dim { return multiply(d, onnx.Fixed(by)) }
	shrink := func(d onnx.Dim, by int64) onnx.Dim {
		if !d.IsFixed() {
			return open()
		}
		return sized(d.Size / by)
	}
	if n.GetOpType() == "SpaceToDepth" {
		grow, shrink = shrink, grow
	}
	return one(known(x.Type, []onnx.Dim{x.Shape[0], shrink(x.Shape[1], b*b), grow(x.Shape[2], b), grow(x.Shape[3], b)}))
}

// compress selects along an axis, or from all elements in order. The number depends on values.
func compress(n node) []Info {
	x := n.in(0)
	a := onnx.Attribute(n.NodeProto, "axis")
	if a == nil {
		return one(known(x.Type, openDims(1)))
	}
	axis, ok := at(a.GetI(), len(x.Shape))
	if !x.Ranked || !ok {
		return one(typed(x.Type))
	}
	shape := slices.Clone(x.Shape)
	shape[axis] = open()
	return one(known(x.Type, shape))
}
