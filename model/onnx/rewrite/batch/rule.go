package batch

import (
	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
)

// flow returns the position of the batch in the outputs of a node that computes each row
// separately.
func (b *batcher) flow(node *onnxpb.NodeProto, op string) (lane, error) {
	switch op {
	case "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cast", "Ceil", "Celu", "Clip", "Cos", "Cosh", "DequantizeLinear",
		"Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Log",
		"Mish", "Neg", "Not", "QuantizeLinear", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh",
		"Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "ThresholdedRelu":
		return b.onlyFirst(node)
	case "Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or",
		"PRelu", "Pow", "Sub", "Sum", "Where", "Xor":
		return b.align(node)
	case "AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "DepthToSpace", "GlobalAveragePool", "GlobalLpPool",
		"GlobalMaxPool", "GroupNormalization", "InstanceNormalization", "LRN", "LpPool", "MaxPool", "SpaceToDepth":
		return b.leading(node)
	case "MatMul":
		return b.matMul(node)
	case "Gemm":
		return b.gemm(node)
	case "Softmax", "LogSoftmax", "Hardmax", "LayerNormalization":
		return b.normalise(node)
	case "ArgMax", "ArgMin", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
		"ReduceProd", "ReduceSum", "ReduceSumSquare":
		return b.reduce(node)
	case "Concat":
		return b.concat(node)
	case "Gather":
		return b.gather(node)
	case "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Split", "Slice", "Pad", "Tile", "TopK", "CumSum":
		return b.move(node, op)
	default:
		return lane{}, b.refuse(node, "is not known to keep the rows of a batch apart")
	}
}

// align follows the batch through a broadcast. Counted from the right, it must have the same
// position in all inputs that have it. The other inputs must have nothing, or size 1, there.
func (b *batcher) align(node *onnxpb.NodeProto) (lane, error) {
	rank, right := 0, -1
	var found lane
	for i := range node.GetInput() {
		l, ok := b.batched(node, i)
		n := b.rank(node, i)
		if n < 0 {
			return lane{}, b.refuse(node, "takes %q, whose shape is not known", node.GetInput()[i])
		}
		rank = max(rank, n)
		if !ok {
			continue
		}
		if right >= 0 && (right != n-l.axis || found.inner != l.inner) {
			return lane{}, b.refuse(node, "joins values that have the batch in different dimensions")
		}
		right, found = n-l.axis, l
	}
	for i, name := range node.GetInput() {
		if _, ok := b.batched(node, i); ok {
			continue
		}
		shape := b.infos[name].Shape
		if right < 0 || len(shape) >= right && shape[len(shape)-right] != onnx.Fixed(1) {
			return lane{}, b.refuse(node, "combines the batch with %q, which has a fixed number of rows", name)
		}
	}
	return lane{rank - right, found.inner}, nil
}

// leading handles operators whose first dimension is the batch by definition.
func (b *batcher) leading(node *onnxpb.NodeProto) (lane, error) {
	l, err := b.onlyFirst(node)
	if err == nil && l != (lane{0, 1}) {
		err = b.refuse(node, "does not have the batch as its first dimension")
	}
	if err == nil && rewrite.IsOp(node, "BatchNormalization") && onnx.Attribute(node, "training_mode").GetI() != 0 {
		err = b.refuse(node, "takes mean and variance of all rows of a batch")
	}
	if err == nil && rewrite.IsOp(node, "MaxPool") && len(node.GetOutput()) > 1 {
		err = b.refuse(node, "numbers the elements of all rows")
	}
	return l, err
}

// matMul follows the batch in the rows of the left side, or in the outer dimensions of both sides.
func (b *batcher) matMul(node *onnxpb.NodeProto) (lane, error) {
	left, ok := b.batched(node, 0)
	if _, right := b.batched(node, 1); ok && !right {
		rows := b.rank(node, 0) - 2
		if left.axis == rows && b.rank(node, 1) == 2 {
			return left, nil
		}
	}
	l, err := b.align(node)
	if err != nil {
		return lane{}, err
	}
	if l.axis > max(b.rank(node, 0), b.rank(node, 1))-3 {
		return lane{}, b.refuse(node, "sums over the rows of a batch")
	}
	return l, nil
}

// gemm follows the batch in the rows of the left side.
func (b *batcher) gemm(node *onnxpb.NodeProto) (lane, error) {
	l, err := b.onlyFirst(node)
	if err != nil {
		return lane{}, err
	}
	if l.axis != 0 || integer(node, "transA", 0) != 0 {
		return lane{}, b.refuse(node, "does not have the batch as its rows")
	}
	if len(node.GetInput()) > 2 && b.rank(node, 2) == 2 && b.infos[node.GetInput()[2]].Shape[0] != onnx.Fixed(1) {
		return lane{}, b.refuse(node, "adds %q, which has a fixed number of rows", node.GetInput()[2])
	}
	return l, nil
}

// normalise handles operators that scale along one axis, or along all axes from it on (before opset
// 13, and LayerNormalization).
func (b *batcher) normalise(node *onnxpb.NodeProto) (lane, error) {
	l, err := b.onlyFirst(node)
	if err != nil {
		return lane{}, err
	}
	const single = 13
	absent := int64(-1)
	fromAxisOn := node.GetOpType() == "LayerNormalization"
	if !fromAxisOn && b.Opset("") < single {
		absent, fromAxisOn = 1, true
	}
	axis := integer(node, "axis", absent)
	if axis < 0 {
		axis += int64(b.rank(node, 0))
	}
	if int64(l.axis) == axis || fromAxisOn && int64(l.axis) > axis {
		return lane{}, b.refuse(node, "normalises over the rows of a batch")
	}
	return l, nil
}

// reduce follows the batch through the reduction of other axes.
func (b *batcher) reduce(node *onnxpb.NodeProto) (lane, error) {
	l, err := b.onlyFirst(node)
	if err != nil {
		return lane{}, err
	}
	axes, ok := b.fixed(node, 1, "axes")
	if op := node.GetOpType(); op == "ArgMax" || op == "ArgMin" {
		axes, ok = []int64{integer(node, "axis", 0)}, true
	}
	if !ok || len(axes) == 0 {
		return lane{}, b.refuse(node, "joins the rows of a batch, or names no axes")
	}
	return b.without(node, l, axes, integer(node, "keepdims", 1) == 0)
}

// without follows the batch through the reduction of other axes, which are removed or kept.
func (b *batcher) without(node *onnxpb.NodeProto, l lane, axes []int64, removed bool) (lane, error) {
	before := 0
	for _, axis := range axes {
		if axis < 0 {
			axis += int64(b.rank(node, 0))
		}
		if axis == int64(l.axis) {
			return lane{}, b.refuse(node, "joins the rows of a batch")
		}
		if axis < int64(l.axis) {
			before++
		}
	}
	if removed {
		l.axis -= before
	}
	return l, nil
}

// concat follows the batch through a concatenation along another axis. All inputs must have the
// batch.
func (b *batcher) concat(node *onnxpb.NodeProto) (lane, error) {
	first, _ := b.batched(node, 0)
	for i, name := range node.GetInput() {
		if l, ok := b.batched(node, i); !ok || l != first {
			return lane{}, b.refuse(node, "joins values, but %q does not have the batch in the same dimension as the others", name)
		}
	}
	return b.without(node, first, []int64{integer(node, "axis", 1)}, false)
}

// gather looks up indices in a table, or selects from dimensions other than the batch.
func (b *batcher) gather(node *onnxpb.NodeProto) (lane, error) {
	axis := integer(node, "axis", 0)
	if axis < 0 {
		axis += int64(b.rank(node, 0))
	}
	data, fromData := b.batched(node, 0)
	index, fromIndex := b.batched(node, 1)
	ranks := b.rank(node, 1)
	switch {
	case fromData && fromIndex, ranks < 0, b.rank(node, 0) < 0:
		return lane{}, b.refuse(node, "picks from each row by indices that differ from row to row")
	case fromIndex:
		return lane{int(axis) + index.axis, index.inner}, nil
	case int64(data.axis) == axis:
		return lane{}, b.refuse(node, "picks some of the rows of a batch")
	case int64(data.axis) > axis:
		data.axis += ranks - 1
	}
	return data, nil
}

// recur handles recurrent networks: [sequence, batch, …], or with layout 1 [batch, sequence, …].
// Initial states must have the batch too.
func (b *batcher) recur(node *onnxpb.NodeProto) error {
	axis := 1
	if integer(node, "layout", 0) != 0 {
		axis = 0
	}
	for i, name := range node.GetInput() {
		const sequenceLengths, initialHidden, initialCell = 4, 5, 6
		want := axis
		switch i {
		case 0, initialHidden, initialCell:
		case sequenceLengths:
			want = 0
		default:
			continue
		}
		if l, ok := b.batched(node, i); name != "" && (!ok || l != lane{want, 1}) {
			return b.refuse(node, "takes %q, which does not have the batch in dimension %d", name, want)
		}
	}
	for i, name := range node.GetOutput() {
		if name == "" {
			continue
		}
		at := axis
		if i == 0 && axis == 1 {
			at = 2 // [sequence, directions, batch, hidden]
		}
		b.lanes[name] = lane{at, 1}
	}
	return nil
}
