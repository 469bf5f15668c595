// Package ragged joins requests of different shapes into one batch, as Triton's onnxruntime backend
// does: the elements of an input come one after the other in one dimension, further inputs tell the
// model where each request begins (batch_input), and outputs are scattered to the requests by the
// shapes of their inputs (batch_output).
//
// The package runs nothing, and knows no queue.
package ragged

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/engine/session"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// Spec says how the requests of a model form a batch. It is immutable.
type Spec struct {
	flat     map[string]bool // names of inputs in one dimension
	derived  []derived
	scatters map[string]scatter // by output
}

// derived is an input that is made of the shapes of another one.
type derived struct {
	name, source string
	dataType     configpb.DataType
	kind         configpb.BatchInput_Kind
}

// scatter is an output whose parts have the shapes of an input.
type scatter struct {
	source string
	dims   []int64 // with the batch dimension; -1: as in the source
}

// New reads a complete configuration. The result is nil if the requests of a batch have one shape.
func New(c *modelconfig.Config) (*Spec, error) {
	s := &Spec{flat: map[string]bool{}, scatters: map[string]scatter{}}
	ranks := map[string]int{}
	batch := 0
	if c.GetMaxBatchSize() > 0 {
		batch = 1
	}
	for _, in := range c.GetInput() {
		if in.GetAllowRaggedBatch() {
			s.flat[in.GetName()] = true
		}
		dims := in.GetDims()
		if in.GetReshape() != nil {
			dims = in.GetReshape().GetShape()
		}
		ranks[in.GetName()] = len(dims) + batch
	}
	for _, b := range c.GetBatchInput() {
		for _, name := range b.GetTargetName() {
			s.derived = append(s.derived, derived{name, b.GetSourceInput()[0], b.GetDataType(), b.GetKind()})
		}
	}
	for _, b := range c.GetBatchOutput() {
		for _, name := range b.GetTargetName() {
			one := scatter{source: b.GetSourceInput()[0], dims: outputDims(c, name, batch)}
			for i, d := range one.dims {
				if d == -1 && i >= ranks[one.source] {
					return nil, fmt.Errorf("batch_output '%s' of model '%s' has an open dimension %d, which its source '%s' does not have", name, c.GetName(), i, one.source)
				}
			}
			s.scatters[name] = one
		}
	}
	if len(s.flat)+len(s.derived)+len(s.scatters) == 0 {
		return nil, nil
	}
	return s, nil
}

// outputDims returns the shape of an output of the model, with an open batch dimension if the model batches.
func outputDims(c *modelconfig.Config, name string, batch int) []int64 {
	i := slices.IndexFunc(c.GetOutput(), func(out *configpb.ModelOutput) bool { return out.GetName() == name })
	out := c.GetOutput()[i]
	dims := out.GetDims()
	if out.GetReshape() != nil {
		dims = out.GetReshape().GetShape()
	}
	return append([]int64{-1}[:batch:batch], dims...)
}

// Shapes returns the shape of an input in request k of a batch.
type Shapes func(k int, input string) []int64

// Bytes returns the memory that Join takes for the inputs that it adds to a batch of n requests. A shape
// without elements may have any number of rows, so it is not bounded by the data. The result is at most
// 1<<48, which no machine has, so that it can be added up.
func (s *Spec) Bytes(n int, shapes Shapes) int {
	const value = 8 + 4 // as a number, and in wire form
	total := 0.0        // does not overflow
	for i := range s.derived {
		d := &s.derived[i]
		values := 0.0
		for k := range n {
			one := d.values(shapes(k, d.source))
			if d.kind == configpb.BatchInput_BATCH_MAX_ELEMENT_COUNT_AS_SHAPE {
				values = max(values, one)
			} else {
				values += one
			}
		}
		total += value * values
	}
	return int(min(total, 1<<48))
}

// values returns how many values a derived input has for a request whose source has a shape.
func (d *derived) values(source []int64) float64 {
	switch d.kind {
	case configpb.BatchInput_BATCH_MAX_ELEMENT_COUNT_AS_SHAPE:
		return float64(elements(source))
	case configpb.BatchInput_BATCH_ITEM_SHAPE, configpb.BatchInput_BATCH_ITEM_SHAPE_FLATTEN:
		return float64(source[0]) * float64(len(source)-1)
	}
	return 1
}

// Join sets the shapes of a batch of n requests whose data has been gathered, and adds the inputs
// that are made of the requests' shapes.
func (s *Spec) Join(b *session.Batch, n int, shapes Shapes) {
	for i := range b.Inputs {
		if in := &b.Inputs[i]; s.flat[in.Name] {
			total := int64(0)
			for k := range n {
				total += elements(shapes(k, in.Name))
			}
			in.Shape = append(in.Shape[:0], total)
		}
	}
	for _, d := range s.derived {
		shape, values := d.make(n, shapes)
		b.Inputs = append(b.Inputs, session.BatchInput{Name: d.name, DataType: d.dataType, Shape: shape, Parts: [][]byte{encode(d.dataType, values)}})
	}
}

// make returns shape and values of a derived input, by its kind in model_config.proto.
func (d *derived) make(n int, shapes Shapes) (shape, values []int64) {
	total, most := int64(0), int64(0)
	if d.kind == configpb.BatchInput_BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO {
		values = append(values, 0)
	}
	items, rank := int64(0), int64(0)
	for k := range n {
		source := shapes(k, d.source)
		count := elements(source)
		total, most = total+count, max(most, count)
		switch d.kind {
		case configpb.BatchInput_BATCH_ELEMENT_COUNT:
			values = append(values, count)
		case configpb.BatchInput_BATCH_ACCUMULATED_ELEMENT_COUNT, configpb.BatchInput_BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO:
			values = append(values, total)
		case configpb.BatchInput_BATCH_ITEM_SHAPE, configpb.BatchInput_BATCH_ITEM_SHAPE_FLATTEN:
			items, rank = items+source[0], int64(len(source)-1)
			for range source[0] {
				values = append(values, source[1:]...)
			}
		}
	}
	switch d.kind {
	case configpb.BatchInput_BATCH_MAX_ELEMENT_COUNT_AS_SHAPE:
		return []int64{most}, make([]int64, most)
	case configpb.BatchInput_BATCH_ITEM_SHAPE:
		return []int64{items, rank}, values
	}
	return []int64{int64(len(values))}, values
}

// elements returns the number of elements of a shape that has been checked against its data.
func elements(shape []int64) int64 {
	n, _ := request.Product(shape)
	return int64(n)
}

// encode returns numbers in wire form.
func encode(t configpb.DataType, values []int64) []byte {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		bits := uint32(v)
		if t == configpb.DataType_TYPE_FP32 {
			bits = math.Float32bits(float32(v))
		}
		data = binary.LittleEndian.AppendUint32(data, bits)
	}
	return data
}

// Scatters reports whether an output is scattered to the requests.
func (s *Spec) Scatters(output string) bool {
	_, is := s.scatters[output]
	return is
}

// Parts cuts an output of a batch of n requests into their parts, which have its name and type.
func (s *Spec) Parts(whole *request.Tensor, n int, shapes Shapes) ([]request.Tensor, error) {
	to := s.scatters[whole.Name]
	width := uint64(modelconfig.ByteSize(whole.DataType))
	out := make([]request.Tensor, n)
	rest := whole.Data
	for k := range n {
		shape := slices.Clone(to.dims)
		source := shapes(k, to.source)
		for i, d := range shape {
			if d == -1 {
				shape[i] = source[i]
			}
		}
		count, ok := request.Product(shape)
		size, ok := request.Multiply(count, width, ok)
		if !ok || size > uint64(len(rest)) {
			return nil, fault.Errorf(fault.Internal, "output '%s' has shape %s, which is too small for a part of shape %s for each request",
				whole.Name, request.ShapeText(whole.Shape), request.ShapeText(shape))
		}
		out[k] = request.Tensor{Name: whole.Name, DataType: whole.DataType, Shape: shape, Data: rest[:size:size]}
		rest = rest[size:]
	}
	return out, nil
}
