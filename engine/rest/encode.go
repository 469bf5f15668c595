package rest

import (
	"strconv"

	"tuner/engine"
	"tuner/engine/fault"
	"tuner/engine/rest/document"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// appendResponse appends the JSON part of an answer to dst. In the body, the data of the binary
// outputs follows in their order. binaryBytes is its length.
func appendResponse(dst []byte, r *engine.Response, want *inferRequest) (json []byte, binaryBytes int, err error) {
	dst = append(dst, '{')
	if r.ID != "" {
		dst = append(dst, `"id":`...)
		dst = append(document.AppendQuoted(dst, []byte(r.ID)), ',')
	}
	dst = append(dst, `"model_name":`...)
	dst = document.AppendQuoted(dst, []byte(r.Model))
	dst = append(dst, `,"model_version":"`...)
	dst = strconv.AppendInt(dst, r.Version, 10)
	dst = append(dst, '"', ',')
	if r.IsComposed {
		dst = appendSequence(dst, r)
	}
	dst = append(dst, `"outputs":[`...)
	for i := range r.Outputs {
		t := &r.Outputs[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendTensorHead(dst, t)
		if want.loan.Takes(t.Name) {
			dst = append(dst, '}')
			continue
		}
		if want.isBinary(t.Name) {
			dst = append(dst, `,"parameters":{"binary_data_size":`...)
			dst = strconv.AppendInt(dst, int64(len(t.Data)), 10)
			dst = append(dst, "}}"...)
			binaryBytes += len(t.Data)
			continue
		}
		if t.DataType == configpb.DataType_TYPE_FP16 || t.DataType == configpb.DataType_TYPE_BF16 {
			return dst, 0, fault.Errorf(fault.InvalidArgument, "sending %s data via JSON is not supported. Please use the binary data format for output", modelconfig.WireName(t.DataType))
		}
		dst = append(dst, `,"data":`...)
		dst = append(document.AppendTensor(dst, t), '}')
	}
	return append(dst, "]}"...), binaryBytes, nil
}

// appendSequence appends the request's place in a sequence. As in Triton, numbers are signed.
func appendSequence(dst []byte, r *engine.Response) []byte {
	dst = append(dst, `"parameters":{"sequence_id":`...)
	if r.Sequence.Text != "" {
		dst = document.AppendQuoted(dst, []byte(r.Sequence.Text))
	} else {
		dst = strconv.AppendInt(dst, int64(r.Sequence.Number), 10)
	}
	dst = strconv.AppendBool(append(dst, `,"sequence_start":`...), r.Start)
	dst = strconv.AppendBool(append(dst, `,"sequence_end":`...), r.End)
	return append(dst, "},"...)
}

func appendTensorHead(dst []byte, t *engine.Tensor) []byte {
	dst = append(dst, `{"name":`...)
	dst = document.AppendQuoted(dst, []byte(t.Name))
	dst = append(dst, `,"datatype":"`...)
	dst = append(dst, modelconfig.WireName(t.DataType)...)
	dst = append(dst, `","shape":[`...)
	for i, d := range t.Shape {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, d, 10)
	}
	return append(dst, ']')
}

// boundResponse returns an upper bound for the bytes of an answer.
func boundResponse(r *engine.Response, want *inferRequest) int {
	const head, dimension = 256, 21 // bytes around a tensor's data, and of a number with its comma
	size := head + 6*(len(r.ID)+len(r.Model)+len(r.Sequence.Text))
	for i := range r.Outputs {
		t := &r.Outputs[i]
		size += head + 6*len(t.Name) + dimension*len(t.Shape)
		switch {
		case want.loan.Takes(t.Name):
		case want.isBinary(t.Name):
			size += len(t.Data)
		default:
			size += boundJSON(t)
		}
	}
	return size
}

// boundJSON returns an upper bound for the bytes of a tensor's elements as JSON, with their commas.
func boundJSON(t *engine.Tensor) int {
	n := len(t.Data)
	switch t.DataType {
	case configpb.DataType_TYPE_BOOL: // false
		return 6 * n
	case configpb.DataType_TYPE_INT8, configpb.DataType_TYPE_UINT8: // -128
		return 5 * n
	case configpb.DataType_TYPE_INT16, configpb.DataType_TYPE_UINT16: // -32768
		return 7 * n / 2
	case configpb.DataType_TYPE_INT32, configpb.DataType_TYPE_UINT32: // -2147483648
		return 12 * n / 4
	case configpb.DataType_TYPE_INT64, configpb.DataType_TYPE_UINT64: // -9223372036854775808
		return 21 * n / 8
	case configpb.DataType_TYPE_FP32: // -1.1754943508222875e-38
		return 25 * n / 4
	case configpb.DataType_TYPE_FP64:
		return 25 * n / 8
	default: // each byte of a string may become \u001F; the four bytes of the length cover quotes and a comma
		return 6 * n
	}
}
