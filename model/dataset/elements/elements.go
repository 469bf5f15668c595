// Package elements reads the elements of tensors as numbers, and converts tensors between types
// without losing information that matters. It is used by code that reads tensor values: the reader
// of datasets and the comparison of outputs. It refuses conversions that could hide a mistake:
// integers never become floating-point numbers, nor the reverse.
package elements

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"

	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// Floats returns the elements as float64, and nil for a STRING tensor. Integers beyond ±2^53 are
// rounded. BOOL is 0 or 1.
func Floats(t inputs.Tensor) []float64 {
	size := t.Type.Size()
	if size == 0 {
		return nil
	}
	values := make([]float64, 0, int64(len(t.Data))/size)
	if whole, ok := Integers(t); ok {
		for _, v := range whole {
			values = append(values, float64(v))
		}
		return values
	}
	le := binary.LittleEndian
	for data := t.Data; int64(len(data)) >= size; data = data[size:] {
		switch t.Type {
		case onnx.Float:
			values = append(values, float64(math.Float32frombits(le.Uint32(data))))
		case onnx.Double:
			values = append(values, math.Float64frombits(le.Uint64(data)))
		case onnx.Float16:
			values = append(values, onnx.Float16frombits(le.Uint16(data)))
		case onnx.BFloat16:
			values = append(values, float64(math.Float32frombits(uint32(le.Uint16(data))<<16)))
		default: // only UINT64 beyond int64: everything else is an integer
			values = append(values, float64(le.Uint64(data)))
		}
	}
	return values
}

// Integers returns the elements of a tensor of integers or BOOL. ok is false for other types, and
// if a UINT64 exceeds int64.
func Integers(t inputs.Tensor) (values []int64, ok bool) {
	size := t.Type.Size()
	if !t.Type.IsInteger() && t.Type != onnx.Bool {
		return nil, false
	}
	values = make([]int64, 0, int64(len(t.Data))/size)
	for data := t.Data; int64(len(data)) >= size; data = data[size:] {
		v, fits := integer(data, t.Type)
		if !fits {
			return nil, false
		}
		values = append(values, v)
	}
	return values, true
}

// integer returns the first element. fits is false for a UINT64 beyond int64.
func integer(data []byte, t onnx.DataType) (v int64, fits bool) {
	le := binary.LittleEndian
	switch t {
	case onnx.Int8:
		return int64(int8(data[0])), true
	case onnx.Uint8, onnx.Bool:
		return int64(data[0]), true
	case onnx.Int16:
		return int64(int16(le.Uint16(data))), true
	case onnx.Uint16:
		return int64(le.Uint16(data)), true
	case onnx.Int32:
		return int64(int32(le.Uint32(data))), true
	case onnx.Uint32:
		return int64(le.Uint32(data)), true
	case onnx.Int64:
		return int64(le.Uint64(data)), true
	default:
		u := le.Uint64(data)
		return int64(u), u <= math.MaxInt64
	}
}

// InRange returns the smallest and the largest integer of a type. For UINT64 the largest is that of
// int64.
func InRange(t onnx.DataType) (lo, hi int64) {
	bits := 8 * t.Size()
	switch {
	case t == onnx.Bool:
		return 0, 1
	case t == onnx.Int8 || t == onnx.Int16 || t == onnx.Int32 || t == onnx.Int64:
		return -1 << (bits - 1), 1<<(bits-1) - 1
	case bits == 64:
		return 0, math.MaxInt64
	default:
		return 0, 1<<bits - 1
	}
}

// CheckTypes returns an error if the conversion between two types is not allowed for any value.
func CheckTypes(from, to onnx.DataType) error {
	if from == to || from.IsInteger() && to.IsInteger() || from.IsFloat() && to.IsFloat() {
		return nil
	}
	return fmt.Errorf("it is %s instead of %s", from, to)
}

// Convert converts a tensor to another type. Integers become integers if each of them fits.
// Floating-point numbers become floating-point numbers, rounded to nearest, if none becomes
// infinite. The error has the reason.
func Convert(t inputs.Tensor, to onnx.DataType) (inputs.Tensor, error) {
	if err := CheckTypes(t.Type, to); err != nil || t.Type == to {
		return t, err
	}
	convert := convertFloats
	if t.Type.IsInteger() {
		convert = convertIntegers
	}
	out := inputs.Tensor{Type: to, Shape: t.Shape, Data: make([]byte, 0, int64(len(t.Data))/t.Type.Size()*to.Size())}
	for part := range parts(t) {
		var err error
		if out.Data, err = convert(out.Data, part, to); err != nil {
			return inputs.Tensor{}, err
		}
	}
	return out, nil
}

// partSize is the number of elements that are read at a time. As 64-bit numbers, a whole tensor
// would take up to eight times its memory.
const partSize = 1 << 14

// parts yields the elements of a numeric tensor in parts.
func parts(t inputs.Tensor) iter.Seq[inputs.Tensor] {
	return func(yield func(inputs.Tensor) bool) {
		for data := range slices.Chunk(t.Data, int(partSize*t.Type.Size())) {
			if !yield(inputs.Tensor{Type: t.Type, Data: data}) {
				return
			}
		}
	}
}

// FindNaN returns the index of the first element that is NaN. ok is false without one.
func FindNaN(t inputs.Tensor) (i int64, ok bool) {
	if !t.Type.IsFloat() {
		return 0, false
	}
	for part := range parts(t) {
		values := Floats(part)
		if at := slices.IndexFunc(values, math.IsNaN); at >= 0 {
			return i + int64(at), true
		}
		i += int64(len(values))
	}
	return 0, false
}

func convertIntegers(out []byte, t inputs.Tensor, to onnx.DataType) ([]byte, error) {
	values, ok := Integers(t)
	if !ok {
		return nil, fmt.Errorf("it is %s, and has values too large for %s", t.Type, to)
	}
	lo, hi := InRange(to)
	for _, v := range values {
		if v < lo || v > hi {
			return nil, fmt.Errorf("it is %s, and its value %d does not fit %s", t.Type, v, to)
		}
		out = onnx.AppendInteger(out, to, v)
	}
	return out, nil
}

func convertFloats(out []byte, t inputs.Tensor, to onnx.DataType) ([]byte, error) {
	values := Floats(t)
	before := len(out)
	for _, v := range values {
		out = onnx.AppendFloat(out, to, v)
	}
	for i, became := range Floats(inputs.Tensor{Type: to, Data: out[before:]}) {
		if math.IsInf(became, 0) && !math.IsInf(values[i], 0) {
			return nil, fmt.Errorf("it is %s, and its value %g does not fit %s", t.Type, values[i], to)
		}
	}
	return out, nil
}
