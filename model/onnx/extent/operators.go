package extent

import "strings"

// output returns the largest output of an operator whose inputs are constant.
func (n wired) output(operator string) value {
	out := value{elements: most, width: n.width(operator)}
	if len(n.inputs) == 0 {
		return out
	}
	first := n.inputs[0].elements
	switch growthOf(operator) {
	case asFirst:
		out.elements = first
		if first == 0 && strings.HasPrefix(operator, "Reduce") { // the sum of no elements is one
			out.elements = most
		}
	case asSum:
		out.elements = 0
		for _, in := range n.inputs {
			out.elements = sum(out.elements, in.elements)
		}
	case asProduct: // broadcasting
		out.elements = 1
		for _, in := range n.inputs {
			out.elements = product(out.elements, in.elements)
		}
	}
	return out
}

// width returns the bytes of an element of an operator's outputs, or 0 if we do not know them.
func (n wired) width(operator string) uint64 {
	widest, all, isKnown := uint64(0), uint64(0), true
	for _, in := range n.inputs {
		widest, all, isKnown = max(widest, in.width), sum(all, in.width), isKnown && in.width > 0
	}
	isText := widest > textBytes
	if !isKnown && !isText {
		widest = 0
	}
	switch operator {
	case "Cast":
		return n.to
	case "ConstantOfShape":
		if n.value.varies { // it has no value, so zero in float32
			return 4
		}
		return n.value.width
	case "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor", "Not", "IsNaN", "IsInf":
		return 1
	case "ArgMax", "ArgMin", "NonZero":
		return 8
	case "TopK", "Unique": // indices, too
		if widest != 0 {
			widest = max(widest, 8)
		}
		return widest
	case "Expand", "Tile", "Pad", "Slice", "Gather", "GatherElements", "GatherND", "Reshape", "Squeeze", "Unsqueeze", "Range":
		if len(n.inputs) > 0 {
			return n.inputs[0].width // the others are numbers, such as a shape
		}
	}
	if isText && growthOf(operator) == asValues { // it may join them
		return all
	}
	if growthOf(operator) != asValues && operator != "QuantizeLinear" && operator != "DequantizeLinear" && operator != "CastLike" {
		return widest
	}
	return 0
}

// growth names the bound of an output's elements.
type growth int

const (
	asValues  growth = iota // the values of the inputs, or something else
	asFirst                 // the elements of the first input
	asSum                   // of all
	asProduct               // their product
)

func growthOf(operator string) growth {
	switch operator {
	case "Identity", "Cast", "CastLike", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Slice", "Split", "Trilu", "CumSum", "CumProd",
		"ReverseSequence", "DepthToSpace", "SpaceToDepth", "Compress", "Unique", "TopK", "ScatterElements", "ScatterND", "Scatter",
		"Neg", "Abs", "Not", "BitwiseNot", "Sign", "Sqrt", "Exp", "Log", "Floor", "Ceil", "Round", "Reciprocal", "IsNaN", "IsInf", "Clip",
		"Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Tanh", "Erf", "Sigmoid",
		"Relu", "LeakyRelu", "ThresholdedRelu", "Elu", "Selu", "Celu", "Gelu", "Mish", "Swish", "HardSigmoid", "HardSwish", "Softplus",
		"Softsign", "Shrink", "Softmax", "LogSoftmax", "Hardmax", "Dropout", "BatchNormalization", "InstanceNormalization", "LpNormalization",
		"MeanVarianceNormalization", "GlobalAveragePool", "GlobalMaxPool", "QuantizeLinear", "DequantizeLinear",
		"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum",
		"ReduceLogSumExp", "ArgMax", "ArgMin":
		return asFirst
	case "Concat", "GatherElements":
		return asSum
	case "Add", "Sub", "Mul", "Div", "Pow", "Mod", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Less", "LessOrEqual",
		"Greater", "GreaterOrEqual", "And", "Or", "Xor", "Where", "Min", "Max", "Sum", "Mean", "PRelu", "Gather":
		return asProduct
	}
	return asValues
}

// effort names the bound of an operator's work.
type effort int

const (
	linear      effort = iota // its inputs and outputs are read and written
	repeated                  // several times
	contraction               // products of matrices
	quadratic                 // all inputs for each element of an output, at most
	endless                   // an attribute or a value may ask for any amount
)

// passes is how often an unlisted operator may read and write an element; cubic interpolation takes
// 16. The budget of the engine then has room for 8 such operators of 64 MiB in and out. With twice
// as many passes there is room for half of them.
const passes = 64

// effortOf returns an operator's effort. An unlisted operator of ONNX's own domain counts as
// repeated, because the slower ones of ONNX Runtime 1.31 are all listed here. So one harmless
// operator that is new, or that we forgot, does not use up the budget, but many do. Its output may
// still have any size. An unlisted operator of another domain may be a slow one, so it counts as
// quadratic.
func effortOf(operator string) effort {
	switch operator {
	case "MatMul", "Gemm", "MatMulInteger", "QLinearMatMul", "Einsum":
		return contraction
	case "ConstantOfShape", "Expand", "Range", "Tile", "Pad", "OneHot", "EyeLike", "GatherND", "NonZero", "Shape", "Size", "If":
		return linear
	case "Conv", "ConvInteger", "ConvTranspose", "QLinearConv", "DeformConv", "AveragePool", "MaxPool", "LpPool", "LRN", "RNN", "GRU", "LSTM",
		"Attention", "Det", "Col2Im", "TfIdfVectorizer", "NonMaxSuppression":
		return quadratic
	case "DFT", "STFT", "RoiAlign": // the length and the samples
		return endless
	}
	switch {
	case growthOf(operator) != asValues:
		return linear
	case strings.Contains(operator, "."): // of another domain
		return quadratic
	}
	return repeated
}
