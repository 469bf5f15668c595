package inputs

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"tuner/onnx"
	"tuner/onnx/onnxpb"
)

// Tensor is a value for an input.
type Tensor struct {
	Type    onnx.DataType
	Shape   []int64  // with the batch dimension, if the input has one
	Data    []byte   // raw little-endian elements; nil for STRING
	Strings [][]byte // elements of a STRING tensor
}

// Generate makes a value for every input, the same for the same inputs, batch and seed: a request of batch rows, or for a
// model that doesn't batch one request, whatever batch is. The values of an input don't depend on what other inputs there are.
func Generate(in []Input, batch int, seed uint64) map[string]Tensor {
	tensors := make(map[string]Tensor, len(in))
	for _, i := range in {
		h := fnv.New64a()
		h.Write([]byte(i.Name))
		shape := slices.Clone(i.Dims)
		if i.Batched {
			shape = append([]int64{int64(batch)}, shape...)
		}
		tensors[i.Name] = draw(i, shape, rand.New(rand.NewPCG(seed, h.Sum64())))
	}
	return tensors
}

func draw(in Input, shape []int64, r *rand.Rand) Tensor {
	n, _ := onnx.Elements(shape) // Derive checked it
	t := Tensor{Type: in.Type, Shape: shape}
	switch in.Distribution {
	case Text:
		t.Strings = make([][]byte, n)
		for i := range t.Strings {
			t.Strings[i] = strconv.AppendInt(nil, between(in.Range, r), 10)
		}
	case Mask:
		t.Data = drawMask(in.Type, n, shape, r)
	case Normal:
		t.Data = make([]byte, 0, n*in.Type.Size())
		for range n {
			t.Data = appendNumber(t.Data, in.Type, r.NormFloat64())
		}
	case Uniform:
		t.Data = make([]byte, 0, n*in.Type.Size())
		for range n {
			t.Data = appendWhole(t.Data, in.Type, between(in.Range, r))
		}
	}
	return t
}

// between draws from a range; Derive never makes an empty one.
func between(r Range, random *rand.Rand) int64 {
	return r.Lo + int64(random.Uint64N(uint64(r.Hi)-uint64(r.Lo)))
}

// drawMask makes rows like those of padded sequences: ones, at least one, then zeros.
func drawMask(t onnx.DataType, n int64, shape []int64, r *rand.Rand) []byte {
	row := int64(1)
	if len(shape) > 0 {
		row = max(shape[len(shape)-1], 1)
	}
	data := make([]byte, 0, n*t.Size())
	for range n / row {
		ones := 1 + r.Int64N(row)
		for i := range row {
			value := int64(0)
			if i < ones {
				value = 1
			}
			data = appendWhole(data, t, value)
		}
	}
	return data
}

// appendWhole appends a whole number in the form of a type.
func appendWhole(data []byte, t onnx.DataType, v int64) []byte {
	le := binary.LittleEndian
	switch {
	case t.IsFloat():
		return appendNumber(data, t, float64(v))
	case t.Size() == 1:
		return append(data, byte(v))
	case t.Size() == 2:
		return le.AppendUint16(data, uint16(v))
	case t.Size() == 4:
		return le.AppendUint32(data, uint32(v))
	default:
		return le.AppendUint64(data, uint64(v))
	}
}

// appendNumber appends a number in the form of a floating-point type.
func appendNumber(data []byte, t onnx.DataType, v float64) []byte {
	le := binary.LittleEndian
	switch t {
	case onnx.Float16:
		return le.AppendUint16(data, float16(float32(v)))
	case onnx.BFloat16:
		return le.AppendUint16(data, uint16((math.Float32bits(float32(v))+0x8000)>>16))
	case onnx.Double:
		return le.AppendUint64(data, math.Float64bits(v))
	default:
		return le.AppendUint32(data, math.Float32bits(float32(v)))
	}
}

// float16 converts to IEEE 754 half precision, rounding to nearest. What is too small for a normal number becomes 0, what is
// too large the greatest one: good enough for random values, which are neither.
func float16(v float32) uint16 {
	bits := math.Float32bits(v)
	sign := uint16(bits>>16) & 0x8000
	rounded := bits&0x7fffffff + 0x1000
	exponent := int(rounded>>23) - 127 + 15
	switch {
	case exponent <= 0:
		return sign
	case exponent >= 31:
		return sign | 0x7bff
	default:
		return sign | uint16(exponent)<<10 | uint16(rounded>>13)&0x3ff
	}
}

// integers returns the values of a constant of INT32 or INT64; nil for another type.
func integers(t *onnxpb.TensorProto) []int64 {
	raw := t.GetRawData()
	var values []int64
	switch onnx.DataType(t.GetDataType()) {
	case onnx.Int64:
		values = append(values, t.GetInt64Data()...)
		for ; len(raw) >= 8; raw = raw[8:] {
			values = append(values, int64(binary.LittleEndian.Uint64(raw)))
		}
	case onnx.Int32:
		for _, v := range t.GetInt32Data() {
			values = append(values, int64(v))
		}
		for ; len(raw) >= 4; raw = raw[4:] {
			values = append(values, int64(int32(binary.LittleEndian.Uint32(raw))))
		}
	}
	return values
}
