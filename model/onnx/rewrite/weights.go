package rewrite

import (
	"encoding/binary"
	"fmt"
	"math"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// constant is a constant value: an initializer, or one with its two dimensions swapped.
type constant struct {
	tensor     *onnxpb.TensorProto
	transposed bool
}

// findConstant finds the initializer behind a value, through Identity and Transpose of a matrix
// only. Exporters write shared weights and PyTorch's transposed weights in this way.
func findConstant(m *onnx.Model, value string) (constant, bool) {
	var c constant
	for range len(m.Nodes()) + 1 { // an untrusted graph may have cycles
		if c.tensor = m.Initializer(value); c.tensor != nil {
			return c, !c.transposed || len(c.tensor.GetDims()) == 2
		}
		node := m.Producer(value)
		switch {
		case isOp(node, "Identity") && len(node.GetInput()) == 1:
		case isOp(node, "Transpose") && len(node.GetInput()) == 1 && swapsTwo(node):
			c.transposed = !c.transposed
		default:
			return constant{}, false
		}
		value = node.GetInput()[0]
	}
	return constant{}, false
}

// swapsTwo reports whether a Transpose swaps the dimensions of a matrix.
func swapsTwo(node *onnxpb.NodeProto) bool {
	perm := onnx.Attribute(node, "perm").GetInts()
	return len(perm) == 2 && perm[0] == 1 && perm[1] == 0
}

// dims returns the constant's shape.
func (c constant) dims() []int64 {
	dims := c.tensor.GetDims()
	if c.transposed && len(dims) == 2 {
		return []int64{dims[1], dims[0]}
	}
	return dims
}

func (c constant) isFloat() bool { return onnx.DataType(c.tensor.GetDataType()) == onnx.Float }

// floats returns the constant's values in row-major order. m must be the model in which it was
// found.
func (c constant) floats(m *onnx.Model) ([]float32, error) {
	raw, err := m.Data(c.tensor)
	if err != nil {
		return nil, err
	}
	values := make([]float32, len(raw)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	if c.transposed {
		values = transpose(values, int(c.tensor.GetDims()[0]), int(c.tensor.GetDims()[1]))
	}
	return values, nil
}

func transpose(m []float32, rows, columns int) []float32 {
	t := make([]float32, len(m))
	for r := range rows {
		for c := range columns {
			t[c*rows+r] = m[r*columns+c]
		}
	}
	return t
}

// smallestNormal is the smallest normal float32, 2^-126.
const smallestNormal = 0x1p-126

// checkFinite refuses NaN and infinite weights, and counts denormal ones.
func checkFinite(name string, values []float32) (denormal int, err error) {
	for i, v := range values {
		switch a := math.Abs(float64(v)); {
		case math.IsNaN(a) || math.IsInf(a, 0):
			return 0, fmt.Errorf("its weight %q holds %v (element %d of %d); export the model again from a sound checkpoint", name, v, i, len(values))
		case a > 0 && a < smallestNormal:
			denormal++
		}
	}
	return denormal, nil
}

// quantizeSymmetric converts weights into integers between -limit and limit: q = round(v/scale),
// ties to even, with one scale = max|v|/limit per channel. Element i belongs to channel
// channelOf(i). A channel gets the scale 1 and zeros if it has only zeros, or if its scale would be
// denormal.
//
// The arithmetic has 32 bits, except the division for the scale. It is that of
// onnxruntime.quantization's compute_scale_zp and quantize_nparray for symmetric int8, so both
// agree bit by bit.
func quantizeSymmetric(values []float32, limit int8, channels int, channelOf func(int) int) (quantized []byte, scales []float32) {
	scales = make([]float32, channels)
	for i, v := range values {
		c := channelOf(i)
		scales[c] = max(scales[c], float32(math.Abs(float64(v))))
	}
	for c, largest := range scales {
		scale := float64(largest) / float64(limit)
		if scale < smallestNormal {
			scale = 1
		}
		scales[c] = float32(scale)
	}
	quantized = make([]byte, len(values))
	for i, v := range values {
		rounded := math.RoundToEven(float64(v / scales[channelOf(i)]))
		quantized[i] = byte(int8(min(max(rounded, -float64(limit)), float64(limit))))
	}
	return quantized, scales
}
