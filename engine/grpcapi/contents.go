package grpcapi

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"tuner/engine"
	"tuner/engine/fault"
	"tuner/engine/grpcapi/datatype"
	"tuner/model/modelconfig/configpb"
)

// contents are the typed contents of an input, an InferTensorContents. They stay in serialised
// form: protobuf's own form takes 24 bytes for an empty string, which has two on the wire.
type contents struct {
	parts   [][]byte // serialised; more than one are merged
	counts  [bytesContents + 1]int
	strings int // size of bytesContents in bytes
}

// Fields of InferTensorContents.
const (
	boolContents   protowire.Number = 1
	intContents    protowire.Number = 2
	int64Contents  protowire.Number = 3
	uintContents   protowire.Number = 4
	uint64Contents protowire.Number = 5
	fp32Contents   protowire.Number = 6
	fp64Contents   protowire.Number = 7
	bytesContents  protowire.Number = 8
)

// listOf returns the field for the elements of a tensor of a type. FP16 and BF16 have none: 0.
func listOf(t engine.DataType) protowire.Number {
	switch t {
	case configpb.DataType_TYPE_BOOL:
		return boolContents
	case configpb.DataType_TYPE_INT8, configpb.DataType_TYPE_INT16, configpb.DataType_TYPE_INT32:
		return intContents
	case configpb.DataType_TYPE_INT64:
		return int64Contents
	case configpb.DataType_TYPE_UINT8, configpb.DataType_TYPE_UINT16, configpb.DataType_TYPE_UINT32:
		return uintContents
	case configpb.DataType_TYPE_UINT64:
		return uint64Contents
	case configpb.DataType_TYPE_FP32:
		return fp32Contents
	case configpb.DataType_TYPE_FP64:
		return fp64Contents
	case configpb.DataType_TYPE_STRING:
		return bytesContents
	default:
		return 0
	}
}

// widest is the type of a list in error messages.
var widest = map[protowire.Number]engine.DataType{
	boolContents: configpb.DataType_TYPE_BOOL, intContents: configpb.DataType_TYPE_INT32, int64Contents: configpb.DataType_TYPE_INT64,
	uintContents: configpb.DataType_TYPE_UINT32, uint64Contents: configpb.DataType_TYPE_UINT64,
	fp32Contents: configpb.DataType_TYPE_FP32, fp64Contents: configpb.DataType_TYPE_FP64, bytesContents: configpb.DataType_TYPE_STRING,
}

// kindOf returns the wire type of a list's elements.
func kindOf(list protowire.Number) protowire.Type {
	switch list {
	case fp32Contents:
		return protowire.Fixed32Type
	case fp64Contents:
		return protowire.Fixed64Type
	case bytesContents:
		return protowire.BytesType
	default:
		return protowire.VarintType
	}
}

// add checks a serialised InferTensorContents and counts its bytes.
func (c *contents) add(b []byte) error {
	c.parts = append(c.parts, b)
	return eachElement(b, func(list protowire.Number, _ uint64, text []byte) error {
		c.counts[list]++
		c.strings += len(text)
		return nil
	})
}

// eachElement passes the elements of all lists to take: numbers as bits, strings as text. Lists of
// numbers may be packed.
func eachElement(b []byte, take func(list protowire.Number, bits uint64, text []byte) error) error {
	return eachField(b, func(f *field) error {
		if f.number > bytesContents {
			return nil
		}
		switch kind := kindOf(f.number); {
		case f.kind == kind:
			return take(f.number, f.bits, f.value)
		case f.kind == protowire.BytesType:
			return eachPacked(f.value, kind, func(bits uint64) error { return take(f.number, bits, nil) })
		}
		return nil
	})
}

// eachPacked passes the elements of a packed list to take.
func eachPacked(b []byte, kind protowire.Type, take func(bits uint64) error) error {
	for len(b) > 0 {
		var bits uint64
		var n int
		switch kind {
		case protowire.Fixed32Type:
			var short uint32
			short, n = protowire.ConsumeFixed32(b)
			bits = uint64(short)
		case protowire.Fixed64Type:
			bits, n = protowire.ConsumeFixed64(b)
		default:
			bits, n = protowire.ConsumeVarint(b)
		}
		if n < 0 {
			return errMalformed
		}
		if err := take(bits); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// decodeContents converts typed contents to the wire form of a tensor. Its memory is charged to the
// client.
func (m *message) decodeContents(t *engine.Tensor, c *contents) error {
	if err := c.check(t.DataType, t.Name, m.request.Model); err != nil {
		return err
	}
	size := c.size(t.DataType)
	if !m.request.Memory.Take(size) {
		return fault.Full(m.request.Memory)
	}
	m.charged += size
	var err error
	t.Data, err = c.decode(make([]byte, 0, size), t)
	return err
}

// size returns the bytes of the elements in wire form.
func (c *contents) size(t engine.DataType) int {
	if t == configpb.DataType_TYPE_STRING {
		return 4*c.counts[bytesContents] + c.strings
	}
	return widths[t] * c.counts[listOf(t)]
}

var widths = map[engine.DataType]int{
	configpb.DataType_TYPE_BOOL: 1, configpb.DataType_TYPE_INT8: 1, configpb.DataType_TYPE_UINT8: 1, configpb.DataType_TYPE_INT16: 2, configpb.DataType_TYPE_UINT16: 2,
	configpb.DataType_TYPE_INT32: 4, configpb.DataType_TYPE_UINT32: 4, configpb.DataType_TYPE_FP32: 4,
	configpb.DataType_TYPE_INT64: 8, configpb.DataType_TYPE_UINT64: 8, configpb.DataType_TYPE_FP64: 8,
}

// decode appends the elements of a tensor to out.
func (c *contents) decode(out []byte, t *engine.Tensor) ([]byte, error) {
	list := listOf(t.DataType)
	for _, part := range c.parts {
		err := eachElement(part, func(from protowire.Number, bits uint64, text []byte) error {
			if from != list {
				return nil
			}
			var err error
			out, err = appendElement(out, t, bits, text)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// appendElement writes an element in the tensor's width. An integer that does not fit is an error.
func appendElement(out []byte, t *engine.Tensor, bits uint64, text []byte) ([]byte, error) {
	le := binary.LittleEndian
	switch t.DataType {
	case configpb.DataType_TYPE_STRING:
		return append(le.AppendUint32(out, uint32(len(text))), text...), nil
	case configpb.DataType_TYPE_BOOL:
		if bits != 0 {
			bits = 1
		}
		return append(out, byte(bits)), nil
	case configpb.DataType_TYPE_INT64, configpb.DataType_TYPE_UINT64, configpb.DataType_TYPE_FP64:
		return le.AppendUint64(out, bits), nil
	case configpb.DataType_TYPE_INT32, configpb.DataType_TYPE_UINT32, configpb.DataType_TYPE_FP32:
		return le.AppendUint32(out, uint32(bits)), nil
	}
	signed, unsigned := int32(bits), uint32(bits)
	switch {
	case t.DataType == configpb.DataType_TYPE_INT16 && signed == int32(int16(signed)), t.DataType == configpb.DataType_TYPE_UINT16 && unsigned <= math.MaxUint16:
		return le.AppendUint16(out, uint16(bits)), nil
	case t.DataType == configpb.DataType_TYPE_INT8 && signed == int32(int8(signed)), t.DataType == configpb.DataType_TYPE_UINT8 && unsigned <= math.MaxUint8:
		return append(out, byte(bits)), nil
	}
	value := int64(signed)
	if listOf(t.DataType) == uintContents {
		value = int64(unsigned)
	}
	return nil, fault.Errorf(fault.InvalidArgument, "value %d of input '%s' does not fit %s", value, t.Name, datatype.Name(t.DataType))
}

// check checks that only the list for type t has values.
func (c *contents) check(t engine.DataType, name, model string) error {
	own, supplied := listOf(t), false
	for _, list := range []protowire.Number{boolContents, intContents, int64Contents, uintContents, uint64Contents, fp32Contents, fp64Contents, bytesContents} {
		switch {
		case c.counts[list] == 0:
		case supplied:
			return fault.Errorf(fault.InvalidArgument, "unexpected explicit tensor data for input tensor '%s' for model '%s', binary data was already supplied.", name, model)
		case list != own:
			return fault.Errorf(fault.InvalidArgument, "unexpected explicit tensor data for input tensor '%s' for model '%s' of type '%s', expected datatype '%s'",
				name, model, datatype.Name(widest[list]), datatype.Name(t))
		default:
			supplied = true
		}
	}
	return nil
}
