package rewrite

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"tuner/onnx"
	"tuner/onnx/onnxpb"
)

// maxHalf is the largest finite fp16 number, (2 - 2^-10)·2^15.
const maxHalf = 65504

// half rounds a number to fp16 (IEEE 754 binary16), halves to even, but never to infinity, and never to 0 unless it is 0: an
// epsilon of 1e-12 shall still keep a divisor from being 0.
func half(v float32) uint16 {
	const (
		infinity  = 0x7f800000 // as bits of a float32
		tooLarge  = 0x477ff000 // 65520, which rounds to 65536
		normal    = 0x38800000 // 2^-14, the smallest normal fp16 number
		rebias    = 0x38000000 // what the exponents differ by, (127-15)·2^23
		maxBits   = 0x7bff
		subnormal = 0x1p24 // in units of the smallest fp16 number
	)
	bits := math.Float32bits(v)
	sign, size := uint16(bits>>16)&0x8000, bits&0x7fffffff
	switch {
	case size == 0:
		return sign
	case size == infinity:
		return sign | 0x7c00
	case size >= tooLarge:
		return sign | maxBits
	case size < normal:
		units := math.RoundToEven(math.Abs(float64(v)) * subnormal)
		return sign | uint16(max(units, 1))
	default:
		rounded := size + 0xfff + size>>13&1 // half to even on the 13 bits that go
		return sign | uint16((rounded-rebias)>>13)
	}
}

// halve converts a FLOAT constant and gives it a name. Values that are not numbers are an error; those that are too large are
// noted.
func (h *halver) halve(t *onnxpb.TensorProto, name string) (*onnxpb.TensorProto, error) {
	raw, err := h.Data(t)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(raw)/2)
	cut := 0
	for i := 0; i < len(raw); i += 4 {
		v := math.Float32frombits(binary.LittleEndian.Uint32(raw[i:]))
		switch size := math.Abs(float64(v)); {
		case size != size:
			return nil, fmt.Errorf("its weight %q holds NaN (element %d of %d); export the model again from a sound checkpoint", t.GetName(), i/4, len(raw)/4)
		case size > maxHalf && !math.IsInf(size, 0):
			cut++
		}
		out = binary.LittleEndian.AppendUint16(out, half(v))
	}
	if cut > 0 {
		note := fmt.Sprintf("the constant %q has %d values beyond ±%d, fp16's largest, which they became", t.GetName(), cut, maxHalf)
		h.summary.Notes = append(h.summary.Notes, note)
	}
	tensor := newTensor(onnx.Float16, out, t.GetDims()...)
	tensor.Name, tensor.DocString = proto.String(name), t.DocString
	return tensor, nil
}
