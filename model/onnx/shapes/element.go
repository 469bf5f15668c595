package shapes

import "tuner/model/onnx"

// elementRule knows the operators that compute each element of the output from the elements at its place, and those that keep
// shape and type for other reasons.
func elementRule(operator string) rule {
	switch operator {
	case "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Celu", "Clip", "Cos", "Cosh", "CumSum", "Elu",
		"Erf", "Exp", "Floor", "Gelu", "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax", "Identity", "InstanceNormalization",
		"LRN", "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "Mish", "Neg", "Not", "PRelu",
		"RMSNormalization", "Reciprocal", "Relu", "ReverseSequence", "Round", "Scatter", "ScatterElements", "ScatterND", "Selu", "Shrink",
		"Sigmoid", "Sign", "SimplifiedLayerNormalization", "Sin", "Sinh", "Softmax", "Softplus", "Softsign", "Sqrt", "Swish", "Tan",
		"Tanh", "ThresholdedRelu", "Trilu":
		return like
	case "com.microsoft.BiasGelu", "com.microsoft.FastGelu", "com.microsoft.Gelu", "com.microsoft.GroupNorm", "com.microsoft.QuickGelu",
		"com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization":
		return like
	case "Add", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Max", "Mean", "Min", "Mod", "Mul", "Pow", "Sub", "Sum":
		return join
	case "And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Or", "Xor":
		return compare
	case "IsInf", "IsNaN":
		return func(n node) []Info { return one(withType(n.in(0), onnx.Bool)) }
	case "Where":
		return where
	case "Cast":
		return func(n node) []Info { return one(withType(n.in(0), onnx.DataType(n.integer("to", 0)))) }
	case "CastLike":
		return func(n node) []Info { return one(withType(n.in(0), n.in(1).Type)) }
	case "Dropout":
		return dropout
	case "BatchNormalization":
		return like
	case "LayerNormalization":
		return layerNormalization
	default:
		return nil
	}
}

// withType gives a value's shape to another type. Where the type is known the shape may be missing, and the other way round.
func withType(info Info, t onnx.DataType) Info {
	info.Type = t
	return info
}

// join is the rule of operators on values that are broadcast to one another, all of one type.
func join(n node) []Info {
	info := n.joined(0)
	if info.Type = n.in(0).Type; info.Type == 0 && n.GetOpType() != "Pow" { // an exponent may be of another type
		info.Type = n.firstType(1)
	}
	return one(info)
}

func (n node) firstType(from int) onnx.DataType {
	for i := from; i < len(n.GetInput()); i++ {
		if t := n.in(i).Type; t != 0 {
			return t
		}
	}
	return 0
}

// joined returns the broadcast shape of the inputs from the given one on.
func (n node) joined(from int) Info {
	const numpy = 7 // before this opset, the second input adapted to the first in its own ways
	if n.opset() < numpy && from == 0 {
		info := n.in(0)
		return Info{Shape: info.Shape, Ranked: info.Ranked}
	}
	joined := Info{Shape: []onnx.Dim{}, Ranked: true}
	for i := from; i < len(n.GetInput()); i++ {
		if !n.in(i).Ranked {
			return Info{}
		}
		joined.Shape = broadcast(joined.Shape, n.in(i).Shape)
	}
	return joined
}

func compare(n node) []Info { return one(withType(n.joined(0), onnx.Bool)) }

func where(n node) []Info { return one(withType(n.joined(0), n.firstType(1))) }

// dropout has the mask of what was kept as its second output, of BOOL since opset 10.
func dropout(n node) []Info {
	x := n.in(0)
	mask := withType(x, onnx.Bool)
	if x.Type == 0 || n.opset() < 10 {
		mask = x
	}
	return []Info{x, mask}
}

// layerNormalization has mean and inverse deviation as further outputs, of the type that stash_type names.
func layerNormalization(n node) []Info {
	x := n.in(0)
	statistics := typed(onnx.DataType(n.integer("stash_type", int64(onnx.Float))))
	if axis, ok := at(n.integer("axis", -1), len(x.Shape)); x.Ranked && ok {
		shape := openDims(len(x.Shape))
		copy(shape, x.Shape[:axis])
		for i := axis; i < len(shape); i++ {
			shape[i] = onnx.Fixed(1)
		}
		statistics = known(statistics.Type, shape)
	}
	return []Info{x, statistics, statistics}
}
