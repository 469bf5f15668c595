package precision

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"tuner/engine/api"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/runner/payload"
)

// dataTypes pairs ONNX's element types with those of the inference protocol.
var dataTypes = map[onnx.DataType]configpb.DataType{
	onnx.Bool: configpb.DataType_TYPE_BOOL, onnx.String: configpb.DataType_TYPE_STRING,
	onnx.Uint8: configpb.DataType_TYPE_UINT8, onnx.Uint16: configpb.DataType_TYPE_UINT16,
	onnx.Uint32: configpb.DataType_TYPE_UINT32, onnx.Uint64: configpb.DataType_TYPE_UINT64,
	onnx.Int8: configpb.DataType_TYPE_INT8, onnx.Int16: configpb.DataType_TYPE_INT16,
	onnx.Int32: configpb.DataType_TYPE_INT32, onnx.Int64: configpb.DataType_TYPE_INT64,
	onnx.Float16: configpb.DataType_TYPE_FP16, onnx.BFloat16: configpb.DataType_TYPE_BF16,
	onnx.Float: configpb.DataType_TYPE_FP32, onnx.Double: configpb.DataType_TYPE_FP64,
}

// signature returns a model's inputs and outputs in the form of a configuration. An open dimension
// is -1.
func signature(m *onnx.Model) modelconfig.ModelIO {
	tensors := func(values []onnx.Value) []modelconfig.Tensor {
		list := make([]modelconfig.Tensor, len(values))
		for i, v := range values {
			list[i] = modelconfig.Tensor{Name: v.Name, DataType: dataTypes[v.Type], Dims: v.Dims()}
		}
		return list
	}
	return modelconfig.ModelIO{Inputs: tensors(m.Inputs()), Outputs: tensors(m.Outputs())}
}

// request converts inputs to the protocol's form, in order of their names.
func request(in map[string]inputs.Tensor) api.InferRequest {
	var r api.InferRequest
	for _, name := range slices.Sorted(maps.Keys(in)) {
		r.Inputs = append(r.Inputs, payload.Wire(name, in[name]))
	}
	return r
}

// answer reads outputs from the protocol's form.
func answer(list []api.Tensor) (map[string]inputs.Tensor, error) {
	out := make(map[string]inputs.Tensor, len(list))
	for _, t := range list {
		v, err := tensor(t)
		if err != nil {
			return nil, fmt.Errorf("cannot read the output %q: %w", t.Name, err)
		}
		out[t.Name] = v
	}
	return out, nil
}

func tensor(t api.Tensor) (inputs.Tensor, error) {
	wire, err := modelconfig.DataTypeOf(t.Datatype)
	if err != nil {
		return inputs.Tensor{}, err
	}
	for onnxType, configType := range dataTypes {
		if configType != wire {
			continue
		}
		v := inputs.Tensor{Type: onnxType, Shape: t.Shape, Data: t.Data}
		if onnxType == onnx.String {
			v.Data = nil
			v.Strings, err = texts(t.Data)
		}
		if err != nil {
			return inputs.Tensor{}, err
		}
		return v, checkSize(v)
	}
	return inputs.Tensor{}, fmt.Errorf("its type is %s", t.Datatype)
}

// texts reads strings. Each follows its length in 32 bits.
func texts(data []byte) ([][]byte, error) {
	var list [][]byte
	for len(data) > 0 {
		if len(data) < 4 {
			return nil, fmt.Errorf("%d bytes are left where the length of a string belongs", len(data))
		}
		n := binary.LittleEndian.Uint32(data)
		if data = data[4:]; uint64(n) > uint64(len(data)) {
			return nil, fmt.Errorf("a string has %d bytes by its length, but %d are left", n, len(data))
		}
		list = append(list, data[:n])
		data = data[n:]
	}
	return list, nil
}

// checkSize checks that a tensor has as many elements as its shape.
func checkSize(t inputs.Tensor) error {
	n, ok := onnx.Elements(t.Shape)
	have := int64(len(t.Strings))
	if t.Type != onnx.String {
		n, have = n*t.Type.Size(), int64(len(t.Data))
	}
	if !ok || n != have {
		return fmt.Errorf("its %s%v does not fit the %d bytes or strings of the answer", t.Type, t.Shape, have)
	}
	return nil
}
