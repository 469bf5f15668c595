package rewrite

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/shapes"
)

// Expose returns m with values of its main graph as additional outputs, after its own. It skips
// values that are inputs or outputs already. The error names every value that the model does not
// compute, or whose type is unknown.
func Expose(m *onnx.Model, values []string) (*onnx.Model, error) {
	infos, err := shapes.Infer(m)
	if err != nil {
		return nil, fmt.Errorf("cannot expose values of the model: %w", err)
	}
	p := Draft(m.Proto())
	known := map[string]bool{}
	for _, v := range slices.Concat(m.Inputs(), m.Outputs()) {
		known[v.Name] = true
	}
	var errs []error
	for _, value := range values {
		info, typed := infos[value]
		switch {
		case known[value]:
			continue
		case m.Producer(value) == nil:
			errs = append(errs, fmt.Errorf("no node computes the value %q", value))
		case !typed:
			errs = append(errs, fmt.Errorf("the type of the value %q, output of a %s, is not known; export the model with type annotations "+
				"(onnx.shape_inference.infer_shapes)", value, m.Producer(value).GetOpType()))
		}
		known[value] = true
		p.Graph.Output = append(p.Graph.Output, describe(value, info))
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("cannot expose values of the model: %w", errors.Join(errs...))
	}
	return m.Replace(p)
}

// describe declares a value with its inferred type and shape.
func describe(name string, info shapes.Info) *onnxpb.ValueInfoProto {
	tensor := &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(info.Type))}
	if info.Ranked {
		tensor.Shape = &onnxpb.TensorShapeProto{}
	}
	for _, d := range info.Shape {
		dim := &onnxpb.TensorShapeProto_Dimension{}
		switch {
		case d.IsFixed():
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d.Size}
		case d.Symbol != "":
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d.Symbol}
		}
		tensor.Shape.Dim = append(tensor.Shape.Dim, dim)
	}
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: tensor}}}
}
