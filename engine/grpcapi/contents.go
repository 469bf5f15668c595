package grpcapi

import (
	"encoding/binary"
	"math"
	"slices"

	"tuner/engine"
	pb "tuner/engine/api/inferencepb"
	"tuner/modelconfig/configpb"
)

// contents turns the typed contents of an input into wire form. Only the list that belongs to the type may have values.
func contents(t engine.DataType, c *pb.InferTensorContents, name, model string) ([]byte, error) {
	if err := checkLists(t, c, name, model); err != nil {
		return nil, err
	}
	var out []byte
	le := binary.LittleEndian
	switch t {
	case configpb.DataType_TYPE_BOOL:
		for _, v := range c.GetBoolContents() {
			b := byte(0)
			if v {
				b = 1
			}
			out = append(out, b)
		}
	case configpb.DataType_TYPE_INT8, configpb.DataType_TYPE_INT16, configpb.DataType_TYPE_INT32:
		return appendInts(t, c.GetIntContents(), name)
	case configpb.DataType_TYPE_UINT8, configpb.DataType_TYPE_UINT16, configpb.DataType_TYPE_UINT32:
		return appendUints(t, c.GetUintContents(), name)
	case configpb.DataType_TYPE_INT64:
		for _, v := range c.GetInt64Contents() {
			out = le.AppendUint64(out, uint64(v))
		}
	case configpb.DataType_TYPE_UINT64:
		for _, v := range c.GetUint64Contents() {
			out = le.AppendUint64(out, v)
		}
	case configpb.DataType_TYPE_FP32:
		for _, v := range c.GetFp32Contents() {
			out = le.AppendUint32(out, math.Float32bits(v))
		}
	case configpb.DataType_TYPE_FP64:
		for _, v := range c.GetFp64Contents() {
			out = le.AppendUint64(out, math.Float64bits(v))
		}
	case configpb.DataType_TYPE_STRING:
		for _, v := range c.GetBytesContents() {
			out = append(le.AppendUint32(out, uint32(len(v))), v...)
		}
	}
	return out, nil
}

// checkLists checks that only the list for type t has values. FP16 and BF16 have none.
func checkLists(t engine.DataType, c *pb.InferTensorContents, name, model string) error {
	supplied := false
	for _, list := range []struct {
		length int
		types  []engine.DataType // the last is the one that errors speak of
	}{
		{len(c.GetBoolContents()), []engine.DataType{configpb.DataType_TYPE_BOOL}},
		{len(c.GetIntContents()), []engine.DataType{configpb.DataType_TYPE_INT8, configpb.DataType_TYPE_INT16, configpb.DataType_TYPE_INT32}},
		{len(c.GetInt64Contents()), []engine.DataType{configpb.DataType_TYPE_INT64}},
		{len(c.GetUintContents()), []engine.DataType{configpb.DataType_TYPE_UINT8, configpb.DataType_TYPE_UINT16, configpb.DataType_TYPE_UINT32}},
		{len(c.GetUint64Contents()), []engine.DataType{configpb.DataType_TYPE_UINT64}},
		{len(c.GetFp32Contents()), []engine.DataType{configpb.DataType_TYPE_FP32}},
		{len(c.GetFp64Contents()), []engine.DataType{configpb.DataType_TYPE_FP64}},
		{len(c.GetBytesContents()), []engine.DataType{configpb.DataType_TYPE_STRING}},
	} {
		switch {
		case list.length == 0:
		case supplied:
			return engine.Errorf(engine.InvalidArgument, "unexpected explicit tensor data for input tensor '%s' for model '%s', binary data was already supplied.", name, model)
		case !slices.Contains(list.types, t):
			return engine.Errorf(engine.InvalidArgument, "unexpected explicit tensor data for input tensor '%s' for model '%s' of type '%s', expected datatype '%s'",
				name, model, nameOf(list.types[len(list.types)-1]), nameOf(t))
		default:
			supplied = true
		}
	}
	return nil
}

// appendInts narrows integers to the tensor's width; one that does not fit is an error.
func appendInts(t engine.DataType, values []int32, name string) ([]byte, error) {
	var out []byte
	for _, v := range values {
		switch {
		case t == configpb.DataType_TYPE_INT32:
			out = binary.LittleEndian.AppendUint32(out, uint32(v))
		case t == configpb.DataType_TYPE_INT16 && v == int32(int16(v)):
			out = binary.LittleEndian.AppendUint16(out, uint16(v))
		case t == configpb.DataType_TYPE_INT8 && v == int32(int8(v)):
			out = append(out, byte(v))
		default:
			return nil, engine.Errorf(engine.InvalidArgument, "value %d of input '%s' does not fit %s", v, name, nameOf(t))
		}
	}
	return out, nil
}

func appendUints(t engine.DataType, values []uint32, name string) ([]byte, error) {
	var out []byte
	for _, v := range values {
		switch {
		case t == configpb.DataType_TYPE_UINT32:
			out = binary.LittleEndian.AppendUint32(out, v)
		case t == configpb.DataType_TYPE_UINT16 && v <= math.MaxUint16:
			out = binary.LittleEndian.AppendUint16(out, uint16(v))
		case t == configpb.DataType_TYPE_UINT8 && v <= math.MaxUint8:
			out = append(out, byte(v))
		default:
			return nil, engine.Errorf(engine.InvalidArgument, "value %d of input '%s' does not fit %s", v, name, nameOf(t))
		}
	}
	return out, nil
}
