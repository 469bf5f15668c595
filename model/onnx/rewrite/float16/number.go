package float16

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
)

// maxHalf is the largest finite fp16 number, (2 - 2^-10)·2^15.
const maxHalf = 65504

// half rounds a number to fp16. It never returns infinity, and returns 0 only for 0. For example,
// an epsilon of 1e-12 must still keep a divisor from being 0.
func half(v float32) uint16 {
	bits := onnx.Float16bits(float64(v))
	switch size := bits & 0x7fff; {
	case size == 0x7c00 && !math.IsInf(float64(v), 0):
		return bits - 1 // the largest number
	case size == 0 && v != 0:
		return bits + 1 // the smallest number
	}
	return bits
}

// halve converts a FLOAT constant and names it. NaN and infinity are an error. Values that are too
// large add a note.
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
		note := fmt.Sprintf("the constant %q had %d values beyond ±%d, the largest number of fp16; each became that number", t.GetName(), cut, maxHalf)
		h.summary.Notes = append(h.summary.Notes, note)
	}
	tensor := rewrite.NewTensor(onnx.Float16, out, t.GetDims()...)
	tensor.Name, tensor.DocString = proto.String(name), t.DocString
	return tensor, nil
}
