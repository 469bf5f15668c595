package rest

import (
	"strconv"

	"tuner/engine"
	"tuner/modelconfig"
	"tuner/modelconfig/configpb"
)

// appendResponse appends the JSON part of an answer to dst. The data of the outputs that are wanted in binary form follows
// it in the body, in their order; binaryBytes is how much that is.
func appendResponse(dst []byte, r *engine.Response, want *inferRequest) (json []byte, binaryBytes int, err error) {
	dst = append(dst, '{')
	if r.ID != "" {
		dst = append(dst, `"id":`...)
		dst = append(appendQuoted(dst, []byte(r.ID)), ',')
	}
	dst = append(dst, `"model_name":`...)
	dst = appendQuoted(dst, []byte(r.Model))
	dst = append(dst, `,"model_version":"`...)
	dst = strconv.AppendInt(dst, r.Version, 10)
	dst = append(dst, `","outputs":[`...)
	for i := range r.Outputs {
		t := &r.Outputs[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendTensorHead(dst, t)
		if want.isBinary(t.Name) {
			dst = append(dst, `,"parameters":{"binary_data_size":`...)
			dst = strconv.AppendInt(dst, int64(len(t.Data)), 10)
			dst = append(dst, "}}"...)
			binaryBytes += len(t.Data)
			continue
		}
		if t.DataType == configpb.DataType_TYPE_FP16 || t.DataType == configpb.DataType_TYPE_BF16 {
			return dst, 0, engine.Errorf(engine.InvalidArgument, "sending %s data via JSON is not supported. Please use the binary data format for output", modelconfig.WireName(t.DataType))
		}
		dst = append(dst, `,"data":`...)
		dst = append(appendJSON(dst, t), '}')
	}
	return append(dst, "]}"...), binaryBytes, nil
}

func appendTensorHead(dst []byte, t *engine.Tensor) []byte {
	dst = append(dst, `{"name":`...)
	dst = appendQuoted(dst, []byte(t.Name))
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
