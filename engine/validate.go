package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"tuner/modelconfig"
	"tuner/modelconfig/configpb"
)

// signature is what requests to a model are checked against, prepared once at load.
type signature struct {
	name     string
	maxBatch int // 0: the model does not batch, shapes are complete
	inputs   []tensorSpec
	outputs  []tensorSpec // in the order of their names
	variable bool         // some input has a dimension of any size: batches must be of equal shapes
}

// tensorSpec is an input or output as the configuration declares it.
type tensorSpec struct {
	name     string
	dataType DataType
	dims     []int64 // as requests give them, without the batch dimension
	reshaped bool
	reshape  []int64 // as the model has them, without the batch dimension
}

func newSignature(c *modelconfig.Config) *signature {
	s := &signature{name: c.GetName(), maxBatch: int(c.GetMaxBatchSize())}
	for _, in := range c.GetInput() {
		s.inputs = append(s.inputs, newTensorSpec(in.GetName(), in.GetDataType(), in.GetDims(), in.GetReshape()))
		s.variable = s.variable || slices.Contains(in.GetDims(), -1)
	}
	for _, out := range c.GetOutput() {
		s.outputs = append(s.outputs, newTensorSpec(out.GetName(), out.GetDataType(), out.GetDims(), out.GetReshape()))
	}
	slices.SortFunc(s.outputs, func(a, b tensorSpec) int { return strings.Compare(a.name, b.name) })
	return s
}

func newTensorSpec(name string, t DataType, dims []int64, reshape *configpb.ModelTensorReshape) tensorSpec {
	return tensorSpec{name, t, dims, reshape != nil, reshape.GetShape()}
}

// prepared is a valid request: its inputs in the configuration's order, shapes as the model has them.
type prepared struct {
	rows    int // 1 where the model does not batch
	inputs  []Tensor
	outputs []bool // which of the signature's outputs are wanted
	shape   string // requests with the same may share a batch
}

// prepare checks a request. The texts are those of Triton, observed on a real one.
func (s *signature) prepare(r *Request) (prepared, error) {
	p, err := s.check(r)
	var final *Error // some texts come without the request's id
	if err != nil && !errors.As(err, &final) {
		final = Errorf(InvalidArgument, "%s %v", idPrefix(r.ID), err)
	}
	if final != nil {
		return p, final
	}
	if p.outputs, err = s.wanted(r.Outputs); err != nil {
		return p, err
	}
	return p, nil
}

// idPrefix begins most texts that concern a request.
func idPrefix(id string) string {
	if id == "" {
		id = "<id_unknown>"
	}
	return "[request id: " + id + "]"
}

func (s *signature) check(r *Request) (prepared, error) {
	p := prepared{rows: 1, inputs: make([]Tensor, len(s.inputs))}
	if err := s.arrange(r, p.inputs); err != nil {
		return p, err
	}
	for i, spec := range s.inputs {
		if got := p.inputs[i].DataType; got != spec.dataType {
			return p, fmt.Errorf("inference input '%s' data-type is '%s', but model '%s' expects '%s'", spec.name, wireName(got), s.name, wireName(spec.dataType))
		}
	}
	if s.maxBatch > 0 {
		if err := s.checkRows(&p); err != nil {
			return p, err
		}
	}
	var shapes []byte
	for i := range s.inputs {
		if err := s.checkTensor(&s.inputs[i], &p.inputs[i], p.rows); err != nil {
			return p, err
		}
		if s.variable {
			shapes = appendShape(shapes, p.inputs[i].Shape, s.maxBatch > 0)
		}
	}
	p.shape = string(shapes)
	return p, nil
}

// arrange puts the request's inputs into the configuration's order.
func (s *signature) arrange(r *Request, inputs []Tensor) error {
	if len(r.Inputs) != len(s.inputs) {
		return s.countError(r)
	}
	for _, in := range r.Inputs {
		i := slices.IndexFunc(s.inputs, func(spec tensorSpec) bool { return spec.name == in.Name })
		switch {
		case i < 0:
			return Errorf(InvalidArgument, "unexpected inference input '%s' for model '%s'", in.Name, s.name)
		case inputs[i].Name != "":
			return fmt.Errorf("input '%s' already exists in request", in.Name)
		}
		inputs[i] = in
	}
	return nil
}

// countError says which inputs there are and which are missing.
func (s *signature) countError(r *Request) error {
	var got, missing []string
	for _, in := range r.Inputs {
		got = append(got, "'"+in.Name+"'")
	}
	for _, spec := range s.inputs {
		if !slices.Contains(got, "'"+spec.name+"'") {
			missing = append(missing, "'"+spec.name+"'")
		}
	}
	slices.Sort(got)
	slices.Sort(missing)
	open := "["
	if len(missing) == 0 {
		open = "" // as Triton prints it
	}
	//lint:ignore ST1005 Triton's wording
	return fmt.Errorf("expected %d inputs but got %d inputs for model '%s'. Got input(s) [%s], but missing required input(s) %s%s]. Please provide all required input(s).",
		len(s.inputs), len(r.Inputs), s.name, strings.Join(got, ","), open, strings.Join(missing, ","))
}

// checkRows finds the batch size, which all inputs must agree on.
func (s *signature) checkRows(p *prepared) error {
	for i, in := range p.inputs {
		if len(in.Shape) == 0 || in.Shape[0] < 0 || in.Shape[0] > math.MaxInt32 {
			return fmt.Errorf("input '%s' has no batch dimension for '%s'", in.Name, s.name)
		}
		if i > 0 && in.Shape[0] != p.inputs[0].Shape[0] {
			return fmt.Errorf("input '%s' batch size does not match other inputs for '%s'", in.Name, s.name)
		}
	}
	if len(p.inputs) > 0 {
		p.rows = max(1, int(p.inputs[0].Shape[0]))
	}
	if p.rows > s.maxBatch {
		return fmt.Errorf("inference request batch-size must be <= %d for '%s'", s.maxBatch, s.name)
	}
	return nil
}

// checkTensor checks shape and size of an input and turns its shape into the model's.
func (s *signature) checkTensor(spec *tensorSpec, in *Tensor, rows int) error {
	dims := in.Shape
	if s.maxBatch > 0 {
		dims = dims[1:]
	}
	if !matches(spec.dims, dims) {
		return s.shapeError(spec, in)
	}
	elements, ok := product(dims)
	elements, ok = multiply(elements, uint64(rows), ok)
	if !ok {
		return fmt.Errorf("input '%s' has too many elements for model '%s'", in.Name, s.name)
	}
	if err := s.checkSize(in, elements); err != nil {
		return err
	}
	if spec.reshaped {
		in.Shape = spec.modelShape(in.Shape, s.maxBatch > 0)
	}
	return nil
}

func (s *signature) checkSize(in *Tensor, elements uint64) error {
	size := uint64(modelconfig.ByteSize(in.DataType))
	if size == 0 {
		return s.checkStrings(in, elements)
	}
	want, ok := multiply(elements, size, true)
	if !ok || want != uint64(len(in.Data)) {
		return fmt.Errorf("input byte size mismatch for input '%s' for model '%s'. Expected %d, got %d", in.Name, s.name, want, len(in.Data))
	}
	return nil
}

// checkStrings walks over length-prefixed elements: there must be exactly as many as the shape says.
func (s *signature) checkStrings(in *Tensor, elements uint64) error {
	rest := in.Data
	for i := range elements {
		if len(rest) < 4 {
			return fmt.Errorf("expected %d string elements for inference input '%s', got %d", elements, in.Name, i)
		}
		n := uint64(binary.LittleEndian.Uint32(rest))
		if rest = rest[4:]; uint64(len(rest)) < n {
			return fmt.Errorf("incomplete string data for inference input '%s', expecting string of length %d but only %d bytes available", in.Name, n, len(rest))
		}
		rest = rest[n:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("unexpected number of string elements %d for inference input '%s', expecting %d", elements+1, in.Name, elements)
	}
	return nil
}

func (s *signature) shapeError(spec *tensorSpec, in *Tensor) error {
	want, note := spec.dims, ""
	if s.maxBatch > 0 {
		want = append([]int64{-1}, want...)
		note = " NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size."
	}
	return fmt.Errorf("unexpected shape for input '%s' for model '%s'. Expected %s, got %s.%s", in.Name, s.name, shapeText(want), shapeText(in.Shape), note)
}

// wanted marks the outputs that a request asks for.
func (s *signature) wanted(names []string) ([]bool, error) {
	marks := make([]bool, len(s.outputs))
	for i := range marks {
		marks[i] = len(names) == 0
	}
	for _, name := range names {
		i, found := slices.BinarySearchFunc(s.outputs, name, func(spec tensorSpec, name string) int { return strings.Compare(spec.name, name) })
		if !found {
			return nil, Errorf(InvalidArgument, "unexpected inference output '%s' for model '%s'", name, s.name)
		}
		marks[i] = true
	}
	return marks, nil
}

// modelShape turns a request's shape into the model's; dimensions of any size keep their order.
func (t *tensorSpec) modelShape(shape []int64, batched bool) []int64 {
	return exchange(shape, t.dims, t.reshape, batched)
}

// requestShape turns a shape of the model into the one that clients see.
func (t *tensorSpec) requestShape(shape []int64, batched bool) []int64 {
	return exchange(shape, t.reshape, t.dims, batched)
}

// exchange rewrites shape, which matches from, so that it matches to.
func exchange(shape, from, to []int64, batched bool) []int64 {
	var out []int64
	if batched {
		out, shape = append(out, shape[0]), shape[1:]
	}
	var sizes []int64 // of the dimensions that may have any size
	for i, d := range from {
		if d == -1 && i < len(shape) {
			sizes = append(sizes, shape[i])
		}
	}
	for _, d := range to {
		if d == -1 && len(sizes) > 0 {
			d, sizes = sizes[0], sizes[1:]
		}
		out = append(out, d)
	}
	return out
}

func matches(want, got []int64) bool {
	return slices.EqualFunc(want, got, func(w, g int64) bool { return g >= 0 && (w == -1 || w == g) })
}

// product multiplies dimensions; false if the result doesn't fit 64 bits.
func product(dims []int64) (uint64, bool) {
	n, ok := uint64(1), true
	for _, d := range dims {
		n, ok = multiply(n, uint64(d), ok && d >= 0)
	}
	return n, ok
}

func multiply(a, b uint64, ok bool) (uint64, bool) {
	high, low := bits.Mul64(a, b)
	return low, ok && high == 0 && low <= math.MaxInt64
}

func appendShape(key []byte, shape []int64, batched bool) []byte {
	if batched {
		shape = shape[1:]
	}
	for _, d := range shape {
		key = binary.AppendVarint(key, d)
	}
	return key
}

func wireName(t DataType) string {
	if t == configpb.DataType_TYPE_INVALID {
		return "<invalid>"
	}
	return modelconfig.WireName(t)
}

// shapeText prints a shape as Triton does: [-1,16].
func shapeText(shape []int64) string {
	text := []byte{'['}
	for i, d := range shape {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, d, 10)
	}
	return string(append(text, ']'))
}

// rawInput guesses the shape of the only input from the amount of data.
func (s *signature) rawInput(data []byte) (Tensor, error) {
	spec := s.inputs[0]
	t := Tensor{Name: spec.name, DataType: spec.dataType, Shape: slices.Clone(spec.dims), Data: data}
	width := uint64(modelconfig.ByteSize(spec.dataType))
	if width == 0 {
		if !slices.Equal(spec.dims, []int64{1}) {
			return t, Errorf(InvalidArgument, "%s For BYTE datatype raw input '%s', the model must have input shape [1]", idPrefix(""), spec.name)
		}
		width = max(1, uint64(len(data)))
		t.Data = append(binary.LittleEndian.AppendUint32(nil, uint32(len(data))), data...)
	}
	variable, fixed := -1, width
	for i, d := range t.Shape {
		switch {
		case d >= 0:
			fixed, _ = multiply(fixed, uint64(d), true)
		case variable >= 0:
			return t, Errorf(InvalidArgument, "The shape of Raw request's input '%s' can not be deduced because there are more than one variable-sized dimensions", spec.name)
		default:
			variable = i
		}
	}
	if variable >= 0 {
		t.Shape[variable] = int64(uint64(len(data)) / max(1, fixed))
	}
	if s.maxBatch > 0 {
		t.Shape = append([]int64{1}, t.Shape...)
	}
	return t, nil // a size that doesn't fit is found when the request is checked
}
