// Package tensors has the tensors of a model without a file, such as an ensemble, or a model of another backend than
// ONNX Runtime's. It has them as a configuration declares them, in the form of an ONNX model.
//
// It stands above the model's file and its configuration, and below what makes requests. It reads no file.
package tensors

import (
	"fmt"
	"slices"

	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
)

// Of returns a model with the inputs and outputs of a configuration, and no graph.
func Of(c *modelconfig.Config) *onnx.Model {
	g := build.NewGraph(c.GetName())
	shape := func(name string, dims []int64) []onnx.Dim {
		var list []onnx.Dim
		if c.GetMaxBatchSize() > 0 {
			list = append(list, onnx.Symbol("batch"))
		}
		for i, d := range dims {
			if d < 0 {
				list = append(list, onnx.Symbol(fmt.Sprintf("%s_%d", name, i)))
			} else {
				list = append(list, onnx.Fixed(d))
			}
		}
		return list
	}
	for _, in := range c.GetInput() {
		g.Input(in.GetName(), elementType(in.GetDataType()), shape(in.GetName(), in.GetDims())...)
	}
	for _, out := range c.GetOutput() {
		g.OutputAs(out.GetName(), out.GetName(), elementType(out.GetDataType()), shape(out.GetName(), out.GetDims())...)
	}
	return g.Model()
}

// elementType maps the configuration's element type to ONNX's.
func elementType(t configpb.DataType) onnx.DataType {
	for _, known := range onnx.ServableTypes() {
		if DataType(known) == t {
			return known
		}
	}
	return 0
}

// DataType maps ONNX's element type to the configuration's. CheckServable has refused all others.
func DataType(t onnx.DataType) configpb.DataType {
	switch t {
	case onnx.Bool:
		return configpb.DataType_TYPE_BOOL
	case onnx.Uint8:
		return configpb.DataType_TYPE_UINT8
	case onnx.Uint16:
		return configpb.DataType_TYPE_UINT16
	case onnx.Uint32:
		return configpb.DataType_TYPE_UINT32
	case onnx.Uint64:
		return configpb.DataType_TYPE_UINT64
	case onnx.Int8:
		return configpb.DataType_TYPE_INT8
	case onnx.Int16:
		return configpb.DataType_TYPE_INT16
	case onnx.Int32:
		return configpb.DataType_TYPE_INT32
	case onnx.Int64:
		return configpb.DataType_TYPE_INT64
	case onnx.Float16:
		return configpb.DataType_TYPE_FP16
	case onnx.Float:
		return configpb.DataType_TYPE_FP32
	case onnx.Double:
		return configpb.DataType_TYPE_FP64
	case onnx.String:
		return configpb.DataType_TYPE_STRING
	case onnx.BFloat16:
		return configpb.DataType_TYPE_BF16
	}
	return configpb.DataType_TYPE_INVALID
}

// Called is a model that a pipeline calls, as far as the pipeline's requests depend on it.
type Called struct {
	Name   string
	Model  *onnx.Model
	Shapes map[string][]int64 // of its inputs, without the batch dimension; nil: not known
}

// Values says how the random values of an ensemble's inputs are made: as the first stage takes them that
// reads them, such as numbers of tokens, or sentences for a tokenizer. A stage of another backend is not
// among the called models, and says nothing.
func Values(c *modelconfig.Config, models []Called) map[string]inputs.Input {
	values := map[string]inputs.Input{}
	for _, step := range c.GetEnsembleScheduling().GetStep() {
		i := slices.IndexFunc(models, func(m Called) bool { return m.Name == step.GetModelName() })
		if i < 0 {
			continue
		}
		own, err := inputs.Derive(models[i].Model, inputs.Options{Shape: models[i].Shapes, Default: 1})
		if err != nil {
			continue // its input has a size that is too large: the requests have sizes of their own
		}
		for _, in := range own {
			tensor := step.GetInputMap()[in.Name]
			if _, has := values[tensor]; !has && tensor != "" {
				values[tensor] = in
			}
		}
	}
	return values
}
