package float16

import (
	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
)

// DefaultBlockOps returns the operators that stay in fp32 by default. Classic machine learning has
// no fp16 form. Runtimes lack fp16 for other operators, or give wrong results (indices of equal
// scores, running sums). The list is that of ONNX Runtime's converter, float16.py.
func DefaultBlockOps() []string {
	return []string{
		"ArrayFeatureExtractor", "Binarizer", "CastMap", "CategoryMapper", "CumSum", "DictVectorizer", "FeatureVectorizer", "Imputer",
		"LabelEncoder", "LinearClassifier", "LinearRegressor", "Max", "Min", "NonMaxSuppression", "Normalizer", "OneHotEncoder",
		"RandomUniformLike", "Range", "RoiAlign", "SVMClassifier", "SVMRegressor", "Scaler", "TopK", "TreeEnsemble",
		"TreeEnsembleClassifier", "TreeEnsembleRegressor", "Upsample", "ZipMap",
	}
}

// hasHalf reports whether an operator's schema accepts FLOAT16 for all its FLOAT values, except
// those in floatInputs and floatOutputs.
//
// The schemas are in onnx/defs, and for com.microsoft in ONNX Runtime's ContribOperators.md.
// Operators that are not listed stay in fp32: random numbers, signal processing, normalisations
// that are computed as one sum, quantization, and IsInf. The Clip after fp32 values would remove
// what IsInf looks for.
func hasHalf(operator string, opset int64) bool {
	switch operator {
	case "Abs", "Acos", "Acosh", "Add", "ArgMax", "ArgMin", "Asin", "Asinh", "Atan", "Atanh", "AveragePool", "BatchNormalization", "Cast",
		"CastLike", "Ceil", "Clip", "Compress", "Concat", "Constant", "ConstantOfShape", "Conv", "ConvTranspose", "Cos", "Cosh",
		"CumSum", "DepthToSpace", "Div", "Dropout", "Einsum", "Elu", "Erf", "Exp", "Expand", "Flatten", "Floor", "GRU", "Gather",
		"GatherElements", "GatherND", "Gemm", "GlobalAveragePool", "GlobalMaxPool", "HardSigmoid", "Hardmax", "Identity", "If",
		"InstanceNormalization", "IsNaN", "LSTM", "LeakyRelu", "Log", "LogSoftmax", "Loop", "MatMul", "Max", "MaxPool", "Mean", "Min",
		"Mul", "Neg", "NonZero", "OneHot", "PRelu", "Pad", "Pow", "RNN", "Reciprocal", "ReduceMax", "ReduceMean", "ReduceMin",
		"Relu", "Reshape", "Resize", "ReverseSequence", "Round", "Scan", "Scatter", "ScatterElements", "ScatterND", "Selu", "Shape",
		"Shrink", "Sigmoid", "Sign", "SimplifiedLayerNormalization", "Sin", "Sinh", "Size", "Slice", "Softmax", "Softplus", "Softsign",
		"SpaceToDepth", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tan", "Tanh", "ThresholdedRelu", "Tile", "TopK", "Transpose",
		"Unsqueeze", "Where":
		return true
	case "com.microsoft.Attention", "com.microsoft.BiasGelu", "com.microsoft.EmbedLayerNormalization", "com.microsoft.FastGelu",
		"com.microsoft.FusedConv", "com.microsoft.FusedMatMul", "com.microsoft.Gelu", "com.microsoft.GroupNorm",
		"com.microsoft.MultiHeadAttention", "com.microsoft.QuickGelu", "com.microsoft.SkipGroupNorm",
		"com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization":
		return true
	case "Equal", "Greater", "Less", "Mod":
		return opset >= 11
	case "GreaterOrEqual", "LessOrEqual":
		return opset >= 12
	case "HardSwish", "Trilu":
		return opset >= 14
	case "GridSample":
		return opset >= 16
	case "LayerNormalization":
		return opset >= 17
	case "Mish":
		return opset >= 18
	case "Gelu":
		return opset >= 20
	case "GroupNormalization":
		return opset >= 21
	case "RMSNormalization":
		return opset >= 23
	default:
		return false
	}
}

// reduces reports whether a Scatter combines new and existing values. ONNX Runtime's CPU kernels
// (1.31) refuse that in fp16 at run time.
func reduces(node *onnxpb.NodeProto) bool {
	how := string(onnx.Attribute(node, "reduction").GetS())
	return (rewrite.IsOp(node, "ScatterElements") || rewrite.IsOp(node, "ScatterND")) && how != "" && how != "none"
}

// floatInputs returns the inputs of an operator with hasHalf that must be FLOAT, by its schema or
// in every implementation. These are the region and factors of Resize, and scale and bias of group
// normalisation.
func floatInputs(operator string, opset int64) []int {
	switch {
	case operator == "Resize" && opset < 11:
		return []int{1}
	case operator == "Resize", operator == "com.microsoft.GroupNorm", operator == "com.microsoft.SkipGroupNorm":
		return []int{1, 2}
	default:
		return nil
	}
}

// floatOutputs returns the outputs of an operator with hasHalf that stay FLOAT: the statistics of
// normalisations.
func floatOutputs(operator string) []int {
	switch operator {
	case "LayerNormalization", "SimplifiedLayerNormalization", "com.microsoft.SkipLayerNormalization",
		"com.microsoft.SkipSimplifiedLayerNormalization":
		return []int{1, 2}
	default:
		return nil
	}
}

// isBounded reports whether an operator that stays in fp32 gives values within fp16's range for
// inputs within that range. Then no Clip is needed after it.
func isBounded(operator string) bool {
	switch operator {
	case "Cos", "DequantizeLinear", "Div", "Erf", "Log", "LogSoftmax", "LpNormalization", "Max", "MeanVarianceNormalization", "Min",
		"Normalizer", "OneHotEncoder", "RandomUniformLike", "Reciprocal", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
		"ReduceMin", "Resize", "RoiAlign", "Sigmoid", "Sign", "Sin", "Softmax", "Sqrt", "Tanh", "TopK", "Upsample":
		return true
	default:
		return false
	}
}
