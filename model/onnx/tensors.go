package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"tuner/model/onnx/onnxpb"
)

// Data returns a tensor's values as raw little-endian bytes, for every form of storage in the file.
// It reads external data. The result may be shared with the model and must not be changed. A STRING
// tensor has no such form; its values are in StringData.
func (m *Model) Data(t *onnxpb.TensorProto) ([]byte, error) {
	data, err := m.data(t)
	if err != nil {
		return nil, fmt.Errorf("cannot read the tensor %q: %w", t.GetName(), err)
	}
	return data, nil
}

func (m *Model) data(t *onnxpb.TensorProto) ([]byte, error) {
	want, err := tensorSize(t)
	if err != nil {
		return nil, err
	}
	var data []byte
	switch {
	case isExternal(t):
		return m.readExternal(t, want)
	case t.RawData != nil:
		data = t.GetRawData()
	default:
		data = typedData(t)
	}
	if int64(len(data)) != want {
		return nil, fmt.Errorf("%s%v needs %d bytes of data, the file has %d", DataType(t.GetDataType()), t.GetDims(), want, len(data))
	}
	return data, nil
}

// tensorSize returns the size of a tensor in raw form, in bytes.
func tensorSize(t *onnxpb.TensorProto) (int64, error) {
	n, ok := Elements(t.GetDims())
	if !ok {
		return 0, fmt.Errorf("impossible shape %v", t.GetDims())
	}
	size, ok := DataType(t.GetDataType()).packedSize(n)
	if !ok {
		return 0, fmt.Errorf("%s%v has no raw form", DataType(t.GetDataType()), t.GetDims())
	}
	return size, nil
}

// typedData packs the values from the field of the tensor's type. Small types are in int32_data,
// with one element per number (two for INT4, four for INT2).
func typedData(t *onnxpb.TensorProto) []byte {
	var out []byte
	le := binary.LittleEndian
	switch DataType(t.GetDataType()) {
	case Float, DataType(onnxpb.TensorProto_COMPLEX64):
		for _, v := range t.GetFloatData() {
			out = le.AppendUint32(out, math.Float32bits(v))
		}
	case Double, DataType(onnxpb.TensorProto_COMPLEX128):
		for _, v := range t.GetDoubleData() {
			out = le.AppendUint64(out, math.Float64bits(v))
		}
	case Int64:
		for _, v := range t.GetInt64Data() {
			out = le.AppendUint64(out, uint64(v))
		}
	case Uint64:
		for _, v := range t.GetUint64Data() {
			out = le.AppendUint64(out, v)
		}
	case Uint32:
		for _, v := range t.GetUint64Data() {
			out = le.AppendUint32(out, uint32(v))
		}
	case Int32:
		for _, v := range t.GetInt32Data() {
			out = le.AppendUint32(out, uint32(v))
		}
	case Int16, Uint16, Float16, BFloat16:
		for _, v := range t.GetInt32Data() {
			out = le.AppendUint16(out, uint16(v))
		}
	default:
		for _, v := range t.GetInt32Data() {
			out = append(out, byte(v))
		}
	}
	return out
}

// eachTensor calls visit for every tensor of the model, including those in attributes, subgraphs
// and functions.
func eachTensor(p *onnxpb.ModelProto, visit func(*onnxpb.TensorProto)) {
	eachGraphTensor(p.GetGraph(), visit)
	for _, f := range p.GetFunctions() {
		for _, node := range f.GetNode() {
			eachNodeTensor(node, visit)
		}
	}
	for _, info := range p.GetTrainingInfo() {
		eachGraphTensor(info.GetInitialization(), visit)
		eachGraphTensor(info.GetAlgorithm(), visit)
	}
}

func eachGraphTensor(g *onnxpb.GraphProto, visit func(*onnxpb.TensorProto)) {
	for _, t := range g.GetInitializer() {
		visit(t)
	}
	for _, s := range g.GetSparseInitializer() {
		visit(s.GetValues())
		visit(s.GetIndices())
	}
	for _, node := range g.GetNode() {
		eachNodeTensor(node, visit)
	}
}

func eachNodeTensor(node *onnxpb.NodeProto, visit func(*onnxpb.TensorProto)) {
	for _, a := range node.GetAttribute() {
		if a.GetT() != nil {
			visit(a.GetT())
		}
		for _, t := range a.GetTensors() {
			visit(t)
		}
		for _, s := range slices.Concat(a.GetSparseTensors(), []*onnxpb.SparseTensorProto{a.GetSparseTensor()}) {
			if s != nil {
				visit(s.GetValues())
				visit(s.GetIndices())
			}
		}
	}
	for _, g := range Subgraphs(node) {
		eachGraphTensor(g, visit)
	}
}
