package shapes

import "tuner/model/onnx"

// quantizeRule returns the rules of operators that convert numbers to small integers and back.
func quantizeRule(operator string) rule {
	switch operator {
	case "DynamicQuantizeLinear":
		return func(n node) []Info {
			return []Info{withType(n.in(0), onnx.Uint8), known(onnx.Float, nil), known(onnx.Uint8, nil)}
		}
	case "QuantizeLinear", "com.microsoft.QuantizeLinear":
		return quantize
	case "DequantizeLinear", "com.microsoft.DequantizeLinear":
		return dequantize
	default:
		return nil
	}
}

// quantize returns the type of the zero point, or the one in output_dtype, or UINT8.
func quantize(n node) []Info {
	t := onnx.Uint8
	switch named := n.integer("output_dtype", 0); {
	case n.has(2):
		t = n.in(2).Type
	case named != 0:
		t = onnx.DataType(named)
	}
	return one(withType(n.in(0), t))
}

// dequantize returns the type of the scale, or the one in output_dtype.
func dequantize(n node) []Info {
	t := n.in(1).Type
	if named := n.integer("output_dtype", 0); named != 0 {
		t = onnx.DataType(named)
	}
	return one(withType(n.in(0), t))
}
