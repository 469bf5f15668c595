package payload

import (
	"encoding/binary"
	"maps"
	"slices"

	"tuner/engine/api"
	"tuner/model/dataset/elements"
	"tuner/model/dataset/perfdata"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// datatypes maps the inference protocol's names of element types.
var datatypes = map[string]onnx.DataType{
	"BOOL": onnx.Bool, "BYTES": onnx.String, "FP16": onnx.Float16, "BF16": onnx.BFloat16, "FP32": onnx.Float, "FP64": onnx.Double,
	"INT8": onnx.Int8, "INT16": onnx.Int16, "INT32": onnx.Int32, "INT64": onnx.Int64,
	"UINT8": onnx.Uint8, "UINT16": onnx.Uint16, "UINT32": onnx.Uint32, "UINT64": onnx.Uint64,
}

// datatype returns the protocol's name of an element type, "" if it has none.
func datatype(t onnx.DataType) string {
	for name, each := range datatypes {
		if each == t {
			return name
		}
	}
	return ""
}

// Wire converts a tensor to the protocol's form.
func Wire(name string, v inputs.Tensor) api.Tensor {
	t := api.Tensor{Name: name, Datatype: datatype(v.Type), Shape: v.Shape, Data: v.Data}
	if len(v.Shape) == 0 {
		t.Shape = []int64{1} // no configuration has a tensor without dimensions
	}
	for _, element := range v.Strings {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, uint32(len(element)))
		t.Data = append(t.Data, element...)
	}
	return t
}

// Fill makes a request for a model from the values of its inputs, in the shapes that its configuration c
// states to clients. Where c batches, an input that has only the batch dimension in the file has a second
// one of size 1 in requests, since no configuration has a tensor without dimensions.
func Fill(model string, c *modelconfig.Config, list []inputs.Input, values map[string]inputs.Tensor) api.InferRequest {
	r := api.InferRequest{Model: model}
	isBatching := c.GetMaxBatchSize() > 0
	for _, in := range list {
		t := Wire(in.Name, values[in.Name])
		switch dims, reshape := reshaped(c, in.Name); {
		case reshape != nil:
			t.Shape = modelconfig.Reshaped(t.Shape, reshape.GetShape(), dims, isBatching)
		case isBatching && in.Batched && len(in.Dims) == 0:
			t.Shape = append(slices.Clone(t.Shape), 1)
		}
		r.Inputs = append(r.Inputs, t)
	}
	return r
}

// reshaped returns the dimensions of an input for clients, and what the server makes of them for the model's
// file. nil: nothing, or there is no such file, and the values have the shapes for clients.
func reshaped(c *modelconfig.Config, name string) (dims []int64, reshape *configpb.ModelTensorReshape) {
	if modelconfig.IsForeign(c) {
		return nil, nil
	}
	for _, in := range c.GetInput() {
		if in.GetName() == name {
			return in.GetDims(), in.GetReshape()
		}
	}
	return nil, nil
}

// spec describes an input or output of the model. Dims has no batch dimension; open dimensions are
// -1.
type spec struct {
	perfdata.Spec
	optional bool
}

// isOpen reports whether a dimension is open.
func (s spec) isOpen() bool { return slices.Contains(s.Dims, -1) }

// String returns name, type and shape for people.
func (s spec) String() string {
	return s.Name + " " + datatype(s.Type) + " " + modelconfig.Shape(s.Dims)
}

// specs reads the metadata of inputs or outputs.
func (k *maker) specs(side string, list []api.TensorMetadata) []spec {
	var out []spec
	for _, t := range list {
		dims := t.Shape
		if k.model.Batches() {
			dims = dims[min(1, len(dims)):]
		}
		typ, known := datatypes[t.Datatype]
		switch {
		case !known:
			k.problem("%s %q of the server has the unknown type %q", side, t.Name, t.Datatype)
		case k.model.Batches() && len(t.Shape) == 0:
			k.problem("%s %q of the server has no batch dimension, but the model batches", side, t.Name)
		case slices.ContainsFunc(dims, func(d int64) bool { return d < -1 }):
			k.problem("%s %q of the server has the impossible shape %s", side, t.Name, modelconfig.Shape(t.Shape))
		}
		out = append(out, spec{Spec: perfdata.Spec{Name: t.Name, Type: typ, Dims: slices.Clone(dims)}})
	}
	if side == "output" {
		return out
	}
	for _, c := range k.model.Config.GetInput() {
		if s := find(out, c.GetName()); s != nil {
			s.optional = c.GetOptional()
		}
		if c.GetIsShapeTensor() {
			k.problem("input %q is a shape tensor, which cannot be sent", c.GetName())
		}
	}
	return out
}

// AnswerSize returns the size of a request's outputs in bytes. It is -1 if that is unknown, since a
// shape is open or the elements are text.
func (m Model) AnswerSize(batch int) int64 {
	total := int64(0)
	for _, t := range m.Metadata.Outputs {
		dims := t.Shape
		if m.Batches() {
			dims = dims[min(1, len(dims)):]
		}
		size := datatypes[t.Datatype].Size()
		// bytes: the multiplication by size also checks for overflow
		n, settled := onnx.Elements(append([]int64{size, int64(batch)}, dims...))
		if total += n; !settled || size == 0 || total < 0 {
			return -1
		}
	}
	return total
}

// find returns the spec with the name, nil without one.
func find(list []spec, name string) *spec {
	if i := slices.IndexFunc(list, func(s spec) bool { return s.Name == name }); i >= 0 {
		return &list[i]
	}
	return nil
}

// names lists the valid names, for messages.
func names(list []spec) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.Name
	}
	return out
}

// checkBatch checks the batch size of requests.
func (k *maker) checkBatch() {
	switch most := int(k.model.Config.GetMaxBatchSize()); {
	case k.source.Batch < 1:
		k.problem("the batch size %d is not positive", k.source.Batch)
	case !k.model.Batches() && k.source.Batch > 1:
		k.problem("the batch size %d is not possible: model %q does not batch (its max_batch_size is 0)", k.source.Batch, k.model.Name)
	case k.model.Batches() && k.source.Batch > most:
		k.problem("the batch size %d exceeds the max_batch_size %d of model %q", k.source.Batch, most, k.model.Name)
	}
}

// checkGraph compares the inputs of the model file with those of the server's model.
func (k *maker) checkGraph() {
	if k.model.Graph == nil {
		return
	}
	for _, v := range k.model.Graph.Inputs() {
		s := find(k.in, v.Name)
		if s == nil {
			k.problem("the model file has the input %s, but the server's model %q has only %q: is it the same model?", v, k.model.Name, names(k.in))
			continue
		}
		if v.Type != s.Type {
			k.problem("input %q is %s in the model file, but %s at the server: is it the same model?", v.Name, datatype(v.Type), datatype(s.Type))
		}
		for i, d := range k.fileDims(*s) {
			if d.IsFixed() && s.Dims[i] >= 0 && d.Size != s.Dims[i] {
				k.problem("input %s at the server is %s in the model file: is it the same model?", s, v)
				break
			}
		}
	}
	for _, s := range k.in {
		if !slices.ContainsFunc(k.model.Graph.Inputs(), func(v onnx.Value) bool { return v.Name == s.Name }) {
			k.problem("the server's model %q has the input %s, which the model file lacks: is it the same model?", k.model.Name, s)
		}
	}
}

// fileDims returns the dimensions of an input in the model file, without the batch dimension. It
// returns nil if they do not match the server's, which may reshape.
func (k *maker) fileDims(s spec) []onnx.Dim {
	if k.model.Graph == nil {
		return nil
	}
	for _, v := range k.model.Graph.Inputs() {
		batch := 0
		if k.model.Batches() {
			batch = 1
		}
		if v.Name == s.Name && v.Ranked && len(v.Shape) == len(s.Dims)+batch {
			return v.Shape[batch:]
		}
	}
	return nil
}

// takeShapes sets open dimensions, first from the user's shapes. Then it uses the shapes of other
// inputs, if the model file gives two dimensions the same name.
func (k *maker) takeShapes() {
	for _, name := range slices.Sorted(maps.Keys(k.source.Shapes)) {
		given, s := k.source.Shapes[name], find(k.in, name)
		switch {
		case s == nil:
			k.problem("a shape is given for %q, which is not an input of model %q; its inputs are %q", name, k.model.Name, names(k.in))
		case slices.ContainsFunc(given, func(d int64) bool { return d <= 0 }):
			k.problem("the shape %s given for input %q is not positive", modelconfig.Shape(given), name)
		case !slices.EqualFunc(given, s.Dims, func(d, own int64) bool { return d == own || own == -1 }):
			k.problem("the shape %s given for input %q does not fit the model's %s%s", modelconfig.Shape(given), name, modelconfig.Shape(s.Dims), k.withoutBatch())
		default:
			s.Dims = given
		}
	}
	sizes := map[string]int64{}
	for _, s := range k.in {
		for i, d := range k.fileDims(s) {
			if d.Symbol != "" && s.Dims[i] >= 0 {
				sizes[d.Symbol] = s.Dims[i]
			}
		}
	}
	for _, s := range k.in {
		for i, d := range k.fileDims(s) {
			if size, bound := sizes[d.Symbol]; bound && s.Dims[i] < 0 {
				s.Dims[i] = size
			}
		}
	}
}

// withoutBatch returns a hint that shapes leave out the batch dimension.
func (k *maker) withoutBatch() string {
	if k.model.Batches() {
		return " (without the batch dimension)"
	}
	return ""
}

// checkRanges checks the ranges that the user gives for values.
func (k *maker) checkRanges() {
	for _, name := range slices.Sorted(maps.Keys(k.source.Ranges)) {
		r, s := k.source.Ranges[name], find(k.in, name)
		if s == nil {
			k.problem("a range is given for %q, which is not an input of model %q; its inputs are %q", name, k.model.Name, names(k.in))
			continue
		}
		if !s.Type.IsInteger() {
			k.problem("a range is given for input %s; ranges are for whole numbers", s)
			continue
		}
		if lo, hi := elements.InRange(s.Type); r.Lo >= r.Hi || r.Lo < lo || r.Hi-1 > hi {
			k.problem("the range from %d to below %d given for input %s is empty or beyond the type's %d … %d", r.Lo, r.Hi, s, lo, hi)
		}
	}
}
