package rewrite

import (
	"encoding/binary"
	"math"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// Constant is a constant value: an initializer, or one with its two dimensions swapped.
type Constant struct {
	Tensor     *onnxpb.TensorProto
	Transposed bool
}

// FindConstant finds the initializer behind a value, through Identity and Transpose of a matrix
// only. Exporters write shared weights and PyTorch's transposed weights in this way.
func FindConstant(m *onnx.Model, value string) (Constant, bool) {
	var c Constant
	for range len(m.Nodes()) + 1 { // an untrusted graph may have cycles
		if c.Tensor = m.Initializer(value); c.Tensor != nil {
			return c, !c.Transposed || len(c.Tensor.GetDims()) == 2
		}
		node := m.Producer(value)
		switch {
		case IsOp(node, "Identity") && len(node.GetInput()) == 1:
		case IsOp(node, "Transpose") && len(node.GetInput()) == 1 && swapsTwo(node):
			c.Transposed = !c.Transposed
		default:
			return Constant{}, false
		}
		value = node.GetInput()[0]
	}
	return Constant{}, false
}

// swapsTwo reports whether a Transpose swaps the dimensions of a matrix.
func swapsTwo(node *onnxpb.NodeProto) bool {
	perm := onnx.Attribute(node, "perm").GetInts()
	return len(perm) == 2 && perm[0] == 1 && perm[1] == 0
}

// Dims returns the constant's shape.
func (c Constant) Dims() []int64 {
	dims := c.Tensor.GetDims()
	if c.Transposed && len(dims) == 2 {
		return []int64{dims[1], dims[0]}
	}
	return dims
}

// IsFloat reports whether the values are 32-bit floats.
func (c Constant) IsFloat() bool { return onnx.DataType(c.Tensor.GetDataType()) == onnx.Float }

// Floats returns the constant's values in row-major order. m must be the model in which it was
// found.
func (c Constant) Floats(m *onnx.Model) ([]float32, error) {
	raw, err := m.Data(c.Tensor)
	if err != nil {
		return nil, err
	}
	values := make([]float32, len(raw)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	if c.Transposed {
		values = transpose(values, int(c.Tensor.GetDims()[0]), int(c.Tensor.GetDims()[1]))
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
