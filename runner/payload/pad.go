package payload

import (
	"slices"

	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// Pad returns a tensor that is enlarged at the end of its dimensions to a shape of the same rank,
// with a value in the new elements: a number, or for text an empty one.
func Pad(t inputs.Tensor, shape []int64, value int64) inputs.Tensor {
	if slices.Equal(t.Shape, shape) {
		return t
	}
	padded := inputs.Tensor{Type: t.Type, Shape: slices.Clone(shape)}
	n, _ := onnx.Elements(shape) // the caller's shapes are those of requests
	size := int(t.Type.Size())
	if t.Type == onnx.String {
		padded.Strings = slices.Repeat([][]byte{{}}, int(n))
	} else {
		padded.Data = slices.Repeat(element(t.Type, value), int(n))
	}
	last := len(shape) - 1
	width := int(t.Shape[last]) // elements of a line along the last dimension
	lines := 1
	for _, d := range t.Shape[:last] {
		lines *= int(d)
	}
	for line := range lines {
		to, step, rest := 0, int(shape[last]), line
		for axis := last - 1; axis >= 0; axis-- {
			to += rest % int(t.Shape[axis]) * step
			rest, step = rest/int(t.Shape[axis]), step*int(shape[axis])
		}
		if t.Type == onnx.String {
			copy(padded.Strings[to:], t.Strings[line*width:(line+1)*width])
			continue
		}
		copy(padded.Data[to*size:], t.Data[line*width*size:(line+1)*width*size])
	}
	return padded
}

// element returns the bytes of a number in a type.
func element(t onnx.DataType, value int64) []byte {
	if t.IsFloat() {
		return onnx.AppendFloat(nil, t, float64(value))
	}
	return onnx.AppendInteger(nil, t, value)
}
