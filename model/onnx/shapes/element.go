package shapes

import "tuner/model/onnx"

// elementRule returns the rules of element-wise operators, and of others that keep shape and type.
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

// withType gives a value another type and keeps its shape. Either may be unknown.
func withType(info Info, t onnx.DataType) Info {
	info.Type = t
	return info
}

// join is the rule of operators that broadcast values of one type.
func join(n node) []Info {
	info := n.joined(0)
	if info.Type = n.in(0).Type; info.Type == 0 && n.GetOpType() != "Pow" { // an exponent may have another type
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
	const numpy = 7 // in earlier opsets, the second input was broadcast in its own ways
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

// dropout returns as its second output the mask of kept elements, BOOL since opset 10.
func dropout(n node) []Info {
	x := n.in(0)
	mask := withType(x, onnx.Bool)
	if x.Type == 0 || n.opset() < 10 {
		mask = x
	}
	return []Info{x, mask}
}

// layerNormalization returns mean and inverse deviation as additional outputs, of the type that
// stash_type names.
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
