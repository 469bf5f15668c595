package modelconfig

import (
	"fmt"
	"strings"

	"tuner/model/modelconfig/configpb"
)

// Names that differ between the configuration and the inference protocol.
const (
	typePrefix  = "TYPE_"
	stringBytes = "BYTES"
)

// wireNames are the names that front ends need for each tensor of a request.
var wireNames = [...]string{
	configpb.DataType_TYPE_INVALID: "INVALID", configpb.DataType_TYPE_BOOL: "BOOL",
	configpb.DataType_TYPE_UINT8: "UINT8", configpb.DataType_TYPE_UINT16: "UINT16",
	configpb.DataType_TYPE_UINT32: "UINT32", configpb.DataType_TYPE_UINT64: "UINT64",
	configpb.DataType_TYPE_INT8: "INT8", configpb.DataType_TYPE_INT16: "INT16",
	configpb.DataType_TYPE_INT32: "INT32", configpb.DataType_TYPE_INT64: "INT64",
	configpb.DataType_TYPE_FP16: "FP16", configpb.DataType_TYPE_FP32: "FP32",
	configpb.DataType_TYPE_FP64: "FP64", configpb.DataType_TYPE_BF16: "BF16",
	configpb.DataType_TYPE_STRING: stringBytes,
}

// WireName returns the name of a data type in the inference protocol: FP32 for TYPE_FP32, BYTES for
// TYPE_STRING.
func WireName(t configpb.DataType) string {
	if t >= 0 && int(t) < len(wireNames) {
		return wireNames[t]
	}
	return strings.TrimPrefix(t.String(), typePrefix)
}

// DataTypeOf is the inverse of WireName.
func DataTypeOf(wireName string) (configpb.DataType, error) {
	if wireName == stringBytes {
		return configpb.DataType_TYPE_STRING, nil
	}
	t := configpb.DataType(configpb.DataType_value[typePrefix+wireName])
	if t == configpb.DataType_TYPE_INVALID || t == configpb.DataType_TYPE_STRING {
		return configpb.DataType_TYPE_INVALID, fmt.Errorf("unknown data type %q", wireName)
	}
	return t, nil
}

// ByteSize returns the size of one element in bytes. It returns 0 if the size varies (TYPE_STRING)
// or is unknown.
func ByteSize(t configpb.DataType) int {
	switch t {
	case configpb.DataType_TYPE_BOOL, configpb.DataType_TYPE_INT8, configpb.DataType_TYPE_UINT8:
		return 1
	case configpb.DataType_TYPE_INT16, configpb.DataType_TYPE_UINT16,
		configpb.DataType_TYPE_FP16, configpb.DataType_TYPE_BF16:
		return 2
	case configpb.DataType_TYPE_INT32, configpb.DataType_TYPE_UINT32, configpb.DataType_TYPE_FP32:
		return 4
	case configpb.DataType_TYPE_INT64, configpb.DataType_TYPE_UINT64, configpb.DataType_TYPE_FP64:
		return 8
	default:
		return 0
	}
}
