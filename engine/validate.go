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

	"tuner/engine/fault"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// signature holds the requirements for requests to a model, prepared once at load.
type signature struct {
	name     string
	maxBatch int // 0: the model does not batch, and shapes are complete
	inputs   []tensorSpec
	required int          // number of inputs that are not optional
	outputs  []tensorSpec // in the order of their names
	// an input has a dimension of any size: all shapes of a batch must be equal
	variable bool
}

// tensorSpec is an input or output as declared in the configuration.
type tensorSpec struct {
	name     string
	dataType DataType
	dims     []int64 // dimensions in requests, without the batch dimension
	reshaped bool
	reshape  []int64 // dimensions in the model, without the batch dimension
	ragged   bool    // requests of any shape may share a batch
	optional bool
}

func newSignature(c *modelconfig.Config) *signature {
	s := &signature{name: c.GetName(), maxBatch: int(c.GetMaxBatchSize())}
	for _, in := range c.GetInput() {
		s.inputs = append(s.inputs, newTensorSpec(in.GetName(), in.GetDataType(), in.GetDims(), in.GetReshape()))
		spec := &s.inputs[len(s.inputs)-1]
		spec.ragged, spec.optional = in.GetAllowRaggedBatch(), in.GetOptional()
		if !spec.optional {
			s.required++
		}
		s.variable = s.variable || slices.Contains(in.GetDims(), -1) && !spec.ragged
	}
	for _, out := range c.GetOutput() {
		s.outputs = append(s.outputs, newTensorSpec(out.GetName(), out.GetDataType(), out.GetDims(), out.GetReshape()))
	}
	slices.SortFunc(s.outputs, func(a, b tensorSpec) int { return strings.Compare(a.name, b.name) })
	return s
}

func newTensorSpec(name string, t DataType, dims []int64, reshape *configpb.ModelTensorReshape) tensorSpec {
	return tensorSpec{name: name, dataType: t, dims: dims, reshaped: reshape != nil, reshape: reshape.GetShape()}
}

// prepared is a valid request: its inputs in the configuration's order, with the shapes of the
// model.
type prepared struct {
	rows    int      // 1 if the model does not batch
	inputs  []Tensor // without the optional ones that the request lacks
	outputs []bool   // which of the signature's outputs are wanted; nil: all
	shape   string   // only requests with the same value may share a batch
}

// prepare checks a request. Texts and order of the checks are Triton's, observed on a real one.
func (s *signature) prepare(r *Request) (prepared, error) {
	var p prepared
	err := s.check(r, &p)
	if err == nil {
		return p, nil
	}
	if errors.As(err, new(*fault.Error)) { // some texts do not have the request's id
		return p, err
	}
	return p, fault.Errorf(fault.InvalidArgument, "%s %v", idPrefix(r.ID), err)
}

// idPrefix begins most texts that concern a request.
func idPrefix(id string) string {
	if id == "" {
		id = "<id_unknown>"
	}
	return "[request id: " + id + "]"
}

// check goes over the inputs from the last to the first. Triton's small hash table of them has this
// order. So if several inputs are wrong, both name the same one.
func (s *signature) check(r *Request, p *prepared) error {
	if name := duplicate(r.Inputs, func(in *Tensor) string { return in.Name }); name != "" {
		return fmt.Errorf("input '%s' already exists in request", name)
	}
	var err error
	if p.outputs, err = s.wanted(r.Outputs); err != nil {
		return err
	}
	if len(r.Inputs) > len(s.inputs) || len(r.Inputs) < s.required {
		return s.countError(r)
	}
	p.inputs = make([]Tensor, len(s.inputs))
	for k := range slices.Backward(r.Inputs) {
		i := s.indexOf(r.Inputs[k].Name, k)
		if i < 0 {
			return fault.Errorf(fault.InvalidArgument, "unexpected inference input '%s' for model '%s'", r.Inputs[k].Name, s.name)
		}
		p.inputs[i] = r.Inputs[k]
	}
	if p.rows, err = s.batchSize(r.Inputs); err != nil {
		return err
	}
	for k := range slices.Backward(r.Inputs) {
		i := s.indexOf(r.Inputs[k].Name, k)
		if err := s.checkTensor(&s.inputs[i], &p.inputs[i], p.rows); err != nil {
			return err
		}
	}
	if s.variable || s.required < len(s.inputs) {
		return s.group(r, p)
	}
	return nil
}

// group sets what the requests of a batch must have in common: the shapes, except of ragged inputs,
// and which optional inputs there are. It drops the optional inputs that the request lacks.
func (s *signature) group(r *Request, p *prepared) error {
	var key []byte
	given := p.inputs[:0]
	for i := range s.inputs {
		spec := &s.inputs[i]
		there := p.inputs[i].Name != "" // no input has an empty name
		switch {
		case !there && !spec.optional:
			return s.countError(r)
		case !there:
			key = append(key, 0)
			continue
		case spec.optional:
			key = append(key, 1)
		}
		if s.variable && !spec.ragged {
			key = appendShape(key, p.inputs[i].Shape, s.maxBatch > 0)
		}
		given = append(given, p.inputs[i])
	}
	p.inputs, p.shape = given, string(key)
	return nil
}

// duplicate returns a name that occurs twice in a list, or "".
func duplicate[T any](list []T, name func(*T) string) string {
	const few = 16 // up to this number, comparing all pairs is faster than a table
	if len(list) <= few {
		for k := range list {
			for other := range k {
				if name(&list[other]) == name(&list[k]) {
					return name(&list[k])
				}
			}
		}
		return ""
	}
	seen := make(map[string]bool, len(list))
	for k := range list {
		if seen[name(&list[k])] {
			return name(&list[k])
		}
		seen[name(&list[k])] = true
	}
	return ""
}

// indexOf finds an input by name. It first tries the place likely. It returns -1 without one.
func (s *signature) indexOf(name string, likely int) int {
	if s.inputs[likely].name == name {
		return likely
	}
	return slices.IndexFunc(s.inputs, func(spec tensorSpec) bool { return spec.name == name })
}

// countError lists the inputs in the request and the missing ones.
func (s *signature) countError(r *Request) error {
	var got, missing []string
	there := map[string]bool{}
	for _, in := range slices.Backward(r.Inputs) {
		got = append(got, "'"+in.Name+"'")
		there[in.Name] = true
	}
	for _, spec := range s.inputs {
		if !there[spec.name] && !spec.optional {
			missing = append(missing, "'"+spec.name+"'")
		}
	}
	open := "["
	if len(missing) == 0 {
		open = "" // as Triton prints it
	}
	if s.required < len(s.inputs) {
		//lint:ignore ST1005 Triton's wording
		return fmt.Errorf("expected number of inputs between %d and %d but got %d inputs for model '%s'. Got input(s) [%s], but missing required input(s) %s%s]. Please provide all required input(s).",
			s.required, len(s.inputs), len(r.Inputs), s.name, strings.Join(got, ","), open, strings.Join(missing, ","))
	}
	//lint:ignore ST1005 Triton's wording
	return fmt.Errorf("expected %d inputs but got %d inputs for model '%s'. Got input(s) [%s], but missing required input(s) %s%s]. Please provide all required input(s).",
		len(s.inputs), len(r.Inputs), s.name, strings.Join(got, ","), open, strings.Join(missing, ","))
}

// batchSize returns the number of rows, which must be the same in all inputs. It is 1 if the model
// does not batch, or if there are no inputs.
func (s *signature) batchSize(inputs []Tensor) (int, error) {
	if s.maxBatch == 0 {
		return 1, nil
	}
	var rows int64
	for _, in := range slices.Backward(inputs) {
		switch {
		case len(in.Shape) == 0:
			return 0, fmt.Errorf("input '%s' has no shape but model requires batch dimension for '%s'", in.Name, s.name)
		case rows == 0:
			rows = in.Shape[0]
		case rows != in.Shape[0], rows < 0, rows > math.MaxUint32: // Triton keeps 32 bits of it
			return 0, fmt.Errorf("input '%s' batch size does not match other inputs for '%s'", in.Name, s.name)
		}
	}
	if rows < 0 {
		return 0, s.sizeError(inputs[0].Name, inputs[0].Data, math.MaxUint64)
	}
	if rows > int64(s.maxBatch) {
		return 0, fmt.Errorf("inference request batch-size must be <= %d for '%s'", s.maxBatch, s.name)
	}
	return max(1, int(rows)), nil
}

// checkTensor checks data type, shape and size of an input and converts its shape to the model's.
func (s *signature) checkTensor(spec *tensorSpec, in *Tensor, rows int) error {
	if in.DataType != spec.dataType {
		return fmt.Errorf("inference input '%s' data-type is '%s', but model '%s' expects '%s'", spec.name, wireName(in.DataType), s.name, wireName(spec.dataType))
	}
	dims := in.Shape
	if s.maxBatch > 0 {
		dims = dims[1:]
	}
	if !matches(spec.dims, dims) {
		return s.shapeError(spec, in)
	}
	elements, ok := Product(dims)
	elements, ok = multiply(elements, uint64(rows), ok)
	if !ok {
		return fmt.Errorf("input '%s' has too many elements for model '%s'", in.Name, s.name)
	}
	if err := s.checkSize(in, elements); err != nil {
		return err
	}
	if s.maxBatch > 0 && in.Shape[0] == 0 {
		// data of one row: Triton fails later, in the backend
		return s.sizeError(in.Name, in.Data, 0)
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
		return s.sizeError(in.Name, in.Data, want)
	}
	return nil
}

// sizeError prints want, in bytes, as a signed number, as Triton does.
func (s *signature) sizeError(input string, data []byte, want uint64) error {
	return fmt.Errorf("input byte size mismatch for input '%s' for model '%s'. Expected %d, got %d", input, s.name, int64(want), len(data))
}

// checkStrings walks over length-prefixed elements. Their number must match the shape exactly.
func (s *signature) checkStrings(in *Tensor, elements uint64) error {
	var found, length, left uint64 // the number of elements; length and rest of the last one
	for rest := in.Data; len(rest) > 0; {
		if len(rest) < 4 {
			//lint:ignore ST1005 Triton's wording
			return fmt.Errorf("incomplete string length indicator for inference input '%s' for model '%s', expecting 4 bytes but only %d bytes available. Please make sure the string length indicator is in one buffer.", in.Name, s.name, len(rest))
		}
		if found++; found > elements {
			return fmt.Errorf("unexpected number of string elements %d for inference input '%s' for model '%s', expecting %d", found, in.Name, s.name, elements)
		}
		length, left = uint64(binary.LittleEndian.Uint32(rest)), uint64(len(rest)-4)
		rest = rest[4+min(length, left):]
	}
	switch {
	case found < elements:
		return fmt.Errorf("expected %d string elements for inference input '%s' for model '%s', got %d", elements, in.Name, s.name, found)
	case length > left:
		return fault.Errorf(fault.InvalidArgument, "incomplete string data for inference input '%s', expecting string of length %d but only %d bytes available", in.Name, length, left)
	}
	return nil
}

func (s *signature) shapeError(spec *tensorSpec, in *Tensor) error {
	want, note := spec.dims, ""
	dims := in.Shape
	if s.maxBatch > 0 {
		dims = dims[1:]
		want = append([]int64{-1}, want...)
		note = "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size."
	}
	if len(dims) == len(spec.dims) && slices.Contains(dims, -1) {
		//lint:ignore ST1005 Triton's wording
		return fmt.Errorf("All input dimensions should be specified for input '%s' for model '%s', got %s", in.Name, s.name, shapeText(in.Shape))
	}
	return fmt.Errorf("unexpected shape for input '%s' for model '%s'. Expected %s, got %s. %s", in.Name, s.name, shapeText(want), shapeText(in.Shape), note)
}

// wanted marks the outputs that a request asks for.
func (s *signature) wanted(names []string) ([]bool, error) {
	if len(names) == 0 {
		return nil, nil
	}
	marks := make([]bool, len(s.outputs))
	for _, name := range names {
		i, found := slices.BinarySearchFunc(s.outputs, name, func(spec tensorSpec, name string) int { return strings.Compare(spec.name, name) })
		if !found || marks[i] {
			// Triton checks this first
			if twice := duplicate(names, func(n *string) string { return *n }); twice != "" {
				return nil, fmt.Errorf("output '%s' already exists in request", twice)
			}
			return nil, fault.Errorf(fault.InvalidArgument, "unexpected inference output '%s' for model '%s'", name, s.name)
		}
		marks[i] = true
	}
	return marks, nil
}

// modelShape converts a request's shape to the model's. Dimensions of any size keep their order.
func (t *tensorSpec) modelShape(shape []int64, batched bool) []int64 {
	return exchange(shape, t.dims, t.reshape, batched)
}

// requestShape converts a shape of the model to the one that clients see.
func (t *tensorSpec) requestShape(shape []int64, batched bool) []int64 {
	return exchange(shape, t.reshape, t.dims, batched)
}

// exchange rewrites shape, which matches from, so that it matches to.
func exchange(shape, from, to []int64, batched bool) []int64 {
	var out []int64
	if batched {
		out, shape = append(out, shape[0]), shape[1:]
	}
	var sizes []int64 // sizes of the dimensions that may have any size
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

// Product multiplies dimensions. It returns false if one is negative or the result does not fit
// into 63 bits.
func Product(dims []int64) (uint64, bool) {
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

// shapeText formats a shape as Triton does: [-1,16].
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
			return t, fault.Errorf(fault.InvalidArgument, "%s For BYTE datatype raw input '%s', the model must have input shape [1]", idPrefix(""), spec.name)
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
			return t, fault.Errorf(fault.InvalidArgument, "%s The shape of the raw input '%s' can not be deduced because there are more than one variable-sized dimension", idPrefix(""), spec.name)
		default:
			variable = i
		}
	}
	if variable >= 0 {
		t.Shape[variable] = int64(uint64(len(data)) / max(1, fixed))
		fixed *= uint64(t.Shape[variable]) // at most the amount of data
	}
	if fixed != uint64(len(data)) && spec.dataType != configpb.DataType_TYPE_STRING {
		return t, fault.Errorf(fault.InvalidArgument, "%s %v", idPrefix(""), s.sizeError("raw_input", data, fixed))
	}
	if s.maxBatch > 0 {
		t.Shape = append([]int64{1}, t.Shape...)
	}
	return t, nil
}
