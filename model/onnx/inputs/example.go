package inputs

import (
	"slices"
	"strings"

	"tuner/model/onnx"
)

// Example sizes: a short sequence, and the side of an image, which is that of ImageNet's crops.
const (
	exampleLength = 32
	exampleSide   = 224
)

// Example returns a size for each dimension of an input: its fixed size, or a plausible one for an
// open dimension. Open sides of an image are 224, or equal to a side that the model fixes. Other
// dimensions are 32. The batch dimension is treated like the others.
func Example(v onnx.Value) []int64 {
	sizes, side := make([]int64, len(v.Shape)), sideOf(v)
	for i, d := range v.Shape {
		name := strings.ToLower(d.Symbol)
		switch {
		case d.IsFixed():
			sizes[i] = d.Size
		case side > 0 && i > 0: // the channels are fixed
			sizes[i] = side
		case strings.Contains(name, "height"), strings.Contains(name, "width"):
			sizes[i] = exampleSide
		default:
			sizes[i] = exampleLength
		}
	}
	return sizes
}

// IsImage reports whether an input looks like an image with one or two open sides.
func IsImage(v onnx.Value) bool {
	isOpen := func(d onnx.Dim) bool { return !d.IsFixed() }
	return sideOf(v) > 0 && slices.ContainsFunc(v.Shape[1:], isOpen)
}

// sideOf returns the size for an image's open sides, and 0 if the input does not look like an
// image. An image has a batch dimension, one, three or four channels before or after two sides, and
// a data type for pixels.
func sideOf(v onnx.Value) int64 {
	const rank = 4
	if len(v.Shape) != rank || !v.Type.IsFloat() && v.Type != onnx.Uint8 || strings.Contains(strings.ToLower(v.Name), "mask") {
		return 0
	}
	isChannels := func(d onnx.Dim) bool { return slices.Contains([]int64{1, 3, 4}, d.Size) }
	var pair []onnx.Dim
	switch {
	case isChannels(v.Shape[1]):
		pair = v.Shape[2:]
	case isChannels(v.Shape[3]):
		pair = v.Shape[1:3]
	default:
		return 0
	}
	for _, d := range pair {
		if d.IsFixed() {
			return d.Size
		}
	}
	return exampleSide
}
