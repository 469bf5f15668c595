package inputs

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// Tensor is the value of an input.
type Tensor struct {
	Type    onnx.DataType
	Shape   []int64  // including the batch dimension, if the input has one
	Data    []byte   // raw little-endian elements; nil for STRING
	Strings [][]byte // elements of a STRING tensor
}

// Generate makes a value for every input: a request of batch rows. If the model does not batch,
// batch has no effect. The result is deterministic for the same inputs, batch and seed. The values
// of an input do not depend on other inputs.
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
	n, _ := onnx.Elements(shape) // Derive checked the shape
	t := Tensor{Type: in.Type, Shape: shape}
	switch in.Distribution {
	case Text:
		t.Strings = make([][]byte, n)
		for i := range t.Strings {
			t.Strings[i] = strconv.AppendInt(nil, between(in.Range, r), 10)
		}
	case Sentences:
		t.Strings = make([][]byte, n)
		list := sentences()
		for i := range t.Strings {
			t.Strings[i] = drawText(list, r)
		}
	case Mask:
		t.Data = drawMask(in.Type, n, shape, r)
	case Normal:
		t.Data = make([]byte, 0, n*in.Type.Size())
		for range n {
			t.Data = onnx.AppendFloat(t.Data, in.Type, r.NormFloat64())
		}
	case Uniform:
		t.Data = make([]byte, 0, n*in.Type.Size())
		for range n {
			t.Data = appendWhole(t.Data, in.Type, between(in.Range, r))
		}
	}
	return t
}

// between draws from a range. Derive never makes an empty range.
func between(r Range, random *rand.Rand) int64 {
	return r.Lo + int64(random.Uint64N(uint64(r.Hi)-uint64(r.Lo)))
}

// drawMask makes rows like those of padded sequences: at least one 1, then zeros.
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

// appendWhole appends an integer in the encoding of a type.
func appendWhole(data []byte, t onnx.DataType, v int64) []byte {
	if t.IsFloat() {
		return onnx.AppendFloat(data, t, float64(v))
	}
	return onnx.AppendInteger(data, t, v)
}

// integers returns the values of a constant of INT32 or INT64; nil for other types.
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
