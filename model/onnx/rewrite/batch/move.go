package batch

import (
	"encoding/binary"
	"math"
	"slices"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
)

// move follows the batch through operators that move elements, or that work along one axis.
func (b *batcher) move(node *onnxpb.NodeProto, op string) (lane, error) {
	l, err := b.onlyFirst(node)
	if err != nil {
		return lane{}, err
	}
	rank := b.rank(node, 0)
	switch op {
	case "Transpose":
		return b.transposed(node, l, rank)
	case "Squeeze":
		axes, ok := b.fixed(node, 1, "axes")
		if !ok {
			return lane{}, b.refuse(node, "removes all dimensions of size 1, the batch perhaps among them")
		}
		return b.without(node, l, axes, true)
	case "Unsqueeze":
		return b.unsqueezed(node, l, rank)
	case "Flatten":
		return b.flattened(node, l)
	case "Split", "TopK":
		absent := int64(0)
		if op == "TopK" {
			absent = -1
		}
		return b.without(node, l, []int64{integer(node, "axis", absent)}, false)
	case "CumSum":
		axis, ok := b.fixed(node, 1, "")
		if !ok {
			return lane{}, b.refuse(node, "sums along an axis that is not constant")
		}
		return b.without(node, l, axis, false)
	case "Slice":
		return b.sliced(node, l, rank)
	case "Tile":
		repeats, ok := b.fixed(node, 1, "")
		if !ok || len(repeats) != rank || repeats[l.axis] != 1 {
			return lane{}, b.refuse(node, "repeats the rows of a batch, or repeats a number of times that the graph computes")
		}
	case "Pad":
		pads, ok := b.fixed(node, 1, "pads")
		if !ok || len(pads) != 2*rank || pads[l.axis] != 0 || pads[rank+l.axis] != 0 {
			return lane{}, b.refuse(node, "pads the batch, or pads by sizes that the graph computes")
		}
	}
	return l, nil
}

func (b *batcher) transposed(node *onnxpb.NodeProto, l lane, rank int) (lane, error) {
	perm := onnx.Attribute(node, "perm").GetInts()
	if perm == nil {
		return lane{rank - 1 - l.axis, l.inner}, nil
	}
	to := slices.Index(perm, int64(l.axis))
	if to < 0 {
		return lane{}, b.refuse(node, "does not move the batch by its permutation %v", perm)
	}
	return lane{to, l.inner}, nil
}

func (b *batcher) unsqueezed(node *onnxpb.NodeProto, l lane, rank int) (lane, error) {
	axes, ok := b.fixed(node, 1, "axes")
	if !ok {
		return lane{}, b.refuse(node, "inserts dimensions at positions that the graph computes")
	}
	inserted := make([]bool, rank+len(axes))
	for _, axis := range axes {
		if axis < 0 {
			axis += int64(len(inserted))
		}
		if axis < 0 || axis >= int64(len(inserted)) {
			return lane{}, b.refuse(node, "inserts dimensions %v, which do not exist", axes)
		}
		inserted[axis] = true
	}
	old := -1 // dimensions of the input so far
	for i, isNew := range inserted {
		if !isNew {
			old++
		}
		if !isNew && old == l.axis {
			return lane{i, l.inner}, nil
		}
	}
	return lane{}, b.refuse(node, "inserts dimensions twice")
}

// flattened returns the batch's position in a flattened value. The value is a matrix, and the batch
// is the outer part of its rows.
func (b *batcher) flattened(node *onnxpb.NodeProto, l lane) (lane, error) {
	axis := integer(node, "axis", 1)
	shape := b.infos[node.GetInput()[0]].Shape
	if axis < 0 {
		axis += int64(len(shape))
	}
	if l.axis != 0 || axis <= 0 || axis > int64(len(shape)) {
		return lane{}, b.refuse(node, "does not keep the batch in front")
	}
	for _, d := range shape[1:axis] {
		if !d.IsFixed() {
			return lane{}, b.refuse(node, "joins the batch with a dimension that is not fixed")
		}
		l.inner *= d.Size
	}
	return l, nil
}

// sliced follows the batch through a Slice that cuts other dimensions, or keeps the whole batch.
func (b *batcher) sliced(node *onnxpb.NodeProto, l lane, rank int) (lane, error) {
	starts, okStarts := b.fixed(node, 1, "starts")
	ends, okEnds := b.fixed(node, 2, "ends")
	axes, okAxes := b.fixed(node, 3, "axes")
	if !okAxes { // without axes, the first ones; if the axes input is not constant, they are unknown
		if len(node.GetInput()) > 3 && node.GetInput()[3] != "" {
			return lane{}, b.refuse(node, "cuts along axes that the graph computes")
		}
		for i := range rank {
			axes = append(axes, int64(i))
		}
	}
	for i, axis := range axes {
		if axis < 0 {
			axis += int64(rank)
		}
		if axis != int64(l.axis) || okStarts && i >= len(starts) {
			continue
		}
		whole := okStarts && okEnds && starts[i] == 0 && ends[i] >= math.MaxInt32
		if !whole || b.stepped(node, i) {
			return lane{}, b.refuse(node, "cuts off rows of a batch")
		}
	}
	return l, nil
}

// stepped reports whether a Slice skips elements along its i-th axis.
func (b *batcher) stepped(node *onnxpb.NodeProto, i int) bool {
	if len(node.GetInput()) < 5 || node.GetInput()[4] == "" {
		return false
	}
	steps, ok := b.fixed(node, 4, "")
	return !ok || i >= len(steps) || steps[i] != 1
}

// reshape finds the batch among the new dimensions. If the target has its size, reshape replaces it
// by -1.
func (b *batcher) reshape(node *onnxpb.NodeProto) (*onnxpb.NodeProto, lane, error) {
	in, err := b.onlyFirst(node)
	if err != nil {
		return nil, lane{}, err
	}
	target, ok := b.fixed(node, 1, "")
	from, to := b.infos[node.GetInput()[0]].Shape, b.infos[node.GetOutput()[0]].Shape
	if !ok || len(to) != len(target) {
		return nil, lane{}, b.refuse(node, "takes its target from the graph, not from a constant")
	}
	out, ok := b.newLane(from, to, in)
	if !ok {
		return nil, lane{}, b.refuse(node, "mixes the batch with the dimensions before it, or with some that are not fixed")
	}
	isCopy := func(i int) bool { return target[i] == 0 && integer(node, "allowzero", 0) == 0 }
	copied := in.axis < len(target) && isCopy(in.axis) // the target copies the batch dimension
	if copied && out == in || target[out.axis] == -1 && (!copied || out.axis == in.axis) {
		return node, out, nil
	}
	sizes := slices.Clone(target)
	for i, d := range to {
		switch {
		case i == out.axis:
			sizes[i] = -1
		case sizes[i] == -1 && !d.IsFixed():
			return nil, lane{}, b.refuse(node, "has a dimension of size -1 already, so the batch cannot be another")
		case sizes[i] == -1, isCopy(i) && d.IsFixed():
			sizes[i] = d.Size
		}
	}
	return b.setSizes(node, sizes), out, nil
}

// newLane finds the batch after a reshape. It is the axis that has as many elements before it as
// the batch had, with rows of the same number of elements. Open sizes must not stand on either side
// of it.
func (b *batcher) newLane(from, to []onnx.Dim, in lane) (lane, bool) {
	outer, ok := elements(from[:in.axis])
	total, okRest := elements(from[in.axis+1:])
	if !ok {
		return lane{}, false
	}
	row := in.inner * total // elements of a row, from the batch's dimension on
	before := int64(1)
	for i, d := range to {
		if before == outer && (d.IsFixed() && d.Size%b.size == 0 || !d.IsFixed()) {
			out := lane{i, in.inner}
			rest, okAfter := elements(to[i+1:])
			switch {
			case okRest && okAfter && rest > 0 && row%rest == 0:
				out.inner = row / rest
				return out, !d.IsFixed() || d.Size == b.size*out.inner
			case slices.Equal(from[in.axis+1:], to[i+1:]) && !slices.Contains(to[i+1:], onnx.Symbol("")):
				return out, true
			}
			return lane{}, false
		}
		if !d.IsFixed() {
			return lane{}, false
		}
		before *= d.Size
	}
	return lane{}, false
}

// elements multiplies sizes. ok is false if one is open.
func elements(dims []onnx.Dim) (int64, bool) {
	n := int64(1)
	for _, d := range dims {
		if !d.IsFixed() {
			return 0, false
		}
		n *= d.Size
	}
	return n, true
}

// expand replaces the batch size in the target by 1, which keeps the existing size.
func (b *batcher) expand(node *onnxpb.NodeProto) (*onnxpb.NodeProto, lane, error) {
	in, err := b.onlyFirst(node)
	if err != nil {
		return nil, lane{}, err
	}
	target, ok := b.fixed(node, 1, "")
	if !ok {
		return nil, lane{}, b.refuse(node, "takes its target from the graph, not from a constant")
	}
	rank := b.rank(node, 0)
	out := lane{in.axis + max(len(target)-rank, 0), in.inner}
	k := in.axis + len(target) - rank
	if k < 0 || target[k] == 1 {
		return node, out, nil
	}
	if target[k] != b.size*in.inner {
		return nil, lane{}, b.refuse(node, "repeats the rows of a batch")
	}
	sizes := slices.Clone(target)
	sizes[k] = 1
	return b.setSizes(node, sizes), out, nil
}

// measure records that a value is the shape of a value with the batch.
func (b *batcher) measure(node *onnxpb.NodeProto) error {
	l, _ := b.batched(node, 0)
	if slices.ContainsFunc([]string{"start", "end"}, func(a string) bool { return onnx.Attribute(node, a) != nil }) {
		return b.refuse(node, "takes a part of the shape, which may hold the size of the batch")
	}
	b.vectors[node.GetOutput()[0]] = l.axis
	return nil
}

// count follows a shape whose k-th element is the batch size. Its other elements may be selected.
func (b *batcher) count(node *onnxpb.NodeProto, k int) error {
	computes := func() error { return b.refuse(node, "computes with the size of the batch") }
	if _, first := b.vectors[node.GetInput()[0]]; !first {
		return computes()
	}
	length := int64(1)
	if d := b.infos[node.GetInput()[0]].Shape; len(d) == 1 && d[0].IsFixed() {
		length = d[0].Size
	}
	switch rewrite.Operator(node) {
	case "Cast", "Identity":
		b.vectors[node.GetOutput()[0]] = k
		return nil
	case "Gather":
		indices, ok := b.fixed(node, 1, "")
		if !ok || slices.Contains(indices, int64(k)) || slices.Contains(indices, int64(k)-length) {
			return computes()
		}
		return nil
	case "Slice":
		starts, okStarts := b.fixed(node, 1, "starts")
		ends, okEnds := b.fixed(node, 2, "ends")
		if !okStarts || !okEnds || len(starts) != 1 || len(ends) != 1 || b.stepped(node, 0) {
			return computes()
		}
		start, end := starts[0], ends[0]
		if start < 0 {
			start += length
		}
		if end < 0 {
			end += length
		}
		if start <= int64(k) && int64(k) < end {
			return computes()
		}
		return nil
	default:
		return computes()
	}
}

// wholes returns the elements of a constant of INT32 or INT64. ok is false for other types, and if
// it cannot be read.
func (b *batcher) wholes(t *onnxpb.TensorProto) (list []int64, ok bool) {
	raw, err := b.Data(t)
	if err != nil {
		return nil, false
	}
	switch onnx.DataType(t.GetDataType()) {
	case onnx.Int64:
		for ; len(raw) >= 8; raw = raw[8:] {
			list = append(list, int64(binary.LittleEndian.Uint64(raw)))
		}
	case onnx.Int32:
		for ; len(raw) >= 4; raw = raw[4:] {
			list = append(list, int64(int32(binary.LittleEndian.Uint32(raw))))
		}
	default:
		return nil, false
	}
	return list, true
}
