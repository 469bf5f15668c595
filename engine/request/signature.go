package request

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

// Signature holds the requirements for requests to a model, prepared once at load. It is immutable.
type Signature struct {
	Name     string
	MaxBatch int // 0: the model does not batch, and shapes are complete
	Inputs   []Spec
	Outputs  []Spec // in the order of their names

	required int // number of inputs that are not optional
	// an input has a dimension of any size: all shapes of a batch must be equal
	variable bool
}

// Spec is an input or output as declared in the configuration.
type Spec struct {
	Name     string
	DataType DataType
	Dims     []int64 // dimensions in requests, without the batch dimension
	Reshaped bool
	Reshape  []int64 // dimensions in the model, without the batch dimension
	Optional bool

	ragged bool // requests of any shape may share a batch
}

// NewSignature reads the signature of a complete configuration.
func NewSignature(c *modelconfig.Config) *Signature {
	s := &Signature{Name: c.GetName(), MaxBatch: int(c.GetMaxBatchSize())}
	for _, in := range c.GetInput() {
		s.Inputs = append(s.Inputs, newSpec(in.GetName(), in.GetDataType(), in.GetDims(), in.GetReshape()))
		spec := &s.Inputs[len(s.Inputs)-1]
		spec.ragged, spec.Optional = in.GetAllowRaggedBatch(), in.GetOptional()
		if !spec.Optional {
			s.required++
		}
		s.variable = s.variable || slices.Contains(in.GetDims(), -1) && !spec.ragged
	}
	for _, out := range c.GetOutput() {
		s.Outputs = append(s.Outputs, newSpec(out.GetName(), out.GetDataType(), out.GetDims(), out.GetReshape()))
	}
	slices.SortFunc(s.Outputs, func(a, b Spec) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func newSpec(name string, t DataType, dims []int64, reshape *configpb.ModelTensorReshape) Spec {
	return Spec{Name: name, DataType: t, Dims: dims, Reshaped: reshape != nil, Reshape: reshape.GetShape()}
}

// Prepared is a valid request: its inputs in the configuration's order, with the shapes of the
// model.
type Prepared struct {
	Rows    int      // 1 if the model does not batch
	Inputs  []Tensor // without the optional ones that the request lacks
	Outputs []bool   // which of the signature's outputs are wanted; nil: all
	Shape   string   // only requests with the same value may share a batch
}

// Prepare checks a request. Texts and order of the checks are Triton's, observed on a real one.
func (s *Signature) Prepare(r *Request) (Prepared, error) {
	var p Prepared
	err := s.check(r, &p)
	if err == nil {
		return p, nil
	}
	if errors.As(err, new(*fault.Error)) { // some texts do not have the request's id
		return p, err
	}
	return p, fault.Errorf(fault.InvalidArgument, "%s %v", IDPrefix(r.ID), err)
}

// IDPrefix begins most texts that concern a request.
func IDPrefix(id string) string {
	if id == "" {
		id = "<id_unknown>"
	}
	return "[request id: " + id + "]"
}

// check goes over the inputs from the last to the first. Triton's small hash table of them has this
// order. So if several inputs are wrong, both name the same one.
func (s *Signature) check(r *Request, p *Prepared) error {
	if name := duplicate(r.Inputs, func(in *Tensor) string { return in.Name }); name != "" {
		return fmt.Errorf("input '%s' already exists in request", name)
	}
	var err error
	if p.Outputs, err = s.wanted(r.Outputs); err != nil {
		return err
	}
	if len(r.Inputs) > len(s.Inputs) || len(r.Inputs) < s.required {
		return s.countError(r)
	}
	p.Inputs = make([]Tensor, len(s.Inputs))
	for k := range slices.Backward(r.Inputs) {
		i := s.indexOf(r.Inputs[k].Name, k)
		if i < 0 {
			return fault.Errorf(fault.InvalidArgument, "unexpected inference input '%s' for model '%s'", r.Inputs[k].Name, s.Name)
		}
		p.Inputs[i] = r.Inputs[k]
	}
	if p.Rows, err = s.batchSize(r.Inputs); err != nil {
		return err
	}
	for k := range slices.Backward(r.Inputs) {
		i := s.indexOf(r.Inputs[k].Name, k)
		if err := s.checkTensor(&s.Inputs[i], &p.Inputs[i], p.Rows); err != nil {
			return err
		}
	}
	if s.variable || s.required < len(s.Inputs) {
		return s.group(r, p)
	}
	return nil
}

// group sets what the requests of a batch must have in common: the shapes, except of ragged inputs,
// and which optional inputs there are. It drops the optional inputs that the request lacks.
func (s *Signature) group(r *Request, p *Prepared) error {
	var key []byte
	given := p.Inputs[:0]
	for i := range s.Inputs {
		spec := &s.Inputs[i]
		there := p.Inputs[i].Name != "" // no input has an empty name
		switch {
		case !there && !spec.Optional:
			return s.countError(r)
		case !there:
			key = append(key, 0)
			continue
		case spec.Optional:
			key = append(key, 1)
		}
		if s.variable && !spec.ragged {
			key = appendShape(key, p.Inputs[i].Shape, s.MaxBatch > 0)
		}
		given = append(given, p.Inputs[i])
	}
	p.Inputs, p.Shape = given, string(key)
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
func (s *Signature) indexOf(name string, likely int) int {
	if s.Inputs[likely].Name == name {
		return likely
	}
	return slices.IndexFunc(s.Inputs, func(spec Spec) bool { return spec.Name == name })
}

// countError lists the inputs in the request and the missing ones.
func (s *Signature) countError(r *Request) error {
	var got, missing []string
	there := map[string]bool{}
	for _, in := range slices.Backward(r.Inputs) {
		got = append(got, "'"+in.Name+"'")
		there[in.Name] = true
	}
	for _, spec := range s.Inputs {
		if !there[spec.Name] && !spec.Optional {
			missing = append(missing, "'"+spec.Name+"'")
		}
	}
	open := "["
	if len(missing) == 0 {
		open = "" // as Triton prints it
	}
	if s.required < len(s.Inputs) {
		//lint:ignore ST1005 Triton's wording
		return fmt.Errorf("expected number of inputs between %d and %d but got %d inputs for model '%s'. Got input(s) [%s], but missing required input(s) %s%s]. Please provide all required input(s).",
			s.required, len(s.Inputs), len(r.Inputs), s.Name, strings.Join(got, ","), open, strings.Join(missing, ","))
	}
	//lint:ignore ST1005 Triton's wording
	return fmt.Errorf("expected %d inputs but got %d inputs for model '%s'. Got input(s) [%s], but missing required input(s) %s%s]. Please provide all required input(s).",
		len(s.Inputs), len(r.Inputs), s.Name, strings.Join(got, ","), open, strings.Join(missing, ","))
}

// batchSize returns the number of rows, which must be the same in all inputs. It is 1 if the model
// does not batch, or if there are no inputs.
func (s *Signature) batchSize(inputs []Tensor) (int, error) {
	if s.MaxBatch == 0 {
		return 1, nil
	}
	var rows int64
	for _, in := range slices.Backward(inputs) {
		switch {
		case len(in.Shape) == 0:
			return 0, fmt.Errorf("input '%s' has no shape but model requires batch dimension for '%s'", in.Name, s.Name)
		case rows == 0:
			rows = in.Shape[0]
		case rows != in.Shape[0], rows < 0, rows > math.MaxUint32: // Triton keeps 32 bits of it
			return 0, fmt.Errorf("input '%s' batch size does not match other inputs for '%s'", in.Name, s.Name)
		}
	}
	if rows < 0 {
		return 0, s.sizeError(inputs[0].Name, inputs[0].Data, math.MaxUint64)
	}
	if rows > int64(s.MaxBatch) {
		return 0, fmt.Errorf("inference request batch-size must be <= %d for '%s'", s.MaxBatch, s.Name)
	}
	return max(1, int(rows)), nil
}

// checkTensor checks data type, shape and size of an input and converts its shape to the model's.
func (s *Signature) checkTensor(spec *Spec, in *Tensor, rows int) error {
	if in.DataType != spec.DataType {
		return fmt.Errorf("inference input '%s' data-type is '%s', but model '%s' expects '%s'", spec.Name, WireName(in.DataType), s.Name, WireName(spec.DataType))
	}
	dims := in.Shape
	if s.MaxBatch > 0 {
		dims = dims[1:]
	}
	if !matches(spec.Dims, dims) {
		return s.shapeError(spec, in)
	}
	elements, ok := Product(dims)
	elements, ok = Multiply(elements, uint64(rows), ok)
	if !ok {
		return fmt.Errorf("input '%s' has too many elements for model '%s'", in.Name, s.Name)
	}
	if err := s.checkSize(in, elements); err != nil {
		return err
	}
	if s.MaxBatch > 0 && in.Shape[0] == 0 {
		// data of one row: Triton fails later, in the backend
		return s.sizeError(in.Name, in.Data, 0)
	}
	if spec.Reshaped {
		in.Shape = spec.modelShape(in.Shape, s.MaxBatch > 0)
	}
	return nil
}

func (s *Signature) checkSize(in *Tensor, elements uint64) error {
	size := uint64(modelconfig.ByteSize(in.DataType))
	if size == 0 {
		return s.checkStrings(in, elements)
	}
	want, ok := Multiply(elements, size, true)
	if !ok || want != uint64(len(in.Data)) {
		return s.sizeError(in.Name, in.Data, want)
	}
	return nil
}

// sizeError prints want, in bytes, as a signed number, as Triton does.
func (s *Signature) sizeError(input string, data []byte, want uint64) error {
	return fmt.Errorf("input byte size mismatch for input '%s' for model '%s'. Expected %d, got %d", input, s.Name, int64(want), len(data))
}

// checkStrings walks over length-prefixed elements. Their number must match the shape exactly.
func (s *Signature) checkStrings(in *Tensor, elements uint64) error {
	var found, length, left uint64 // the number of elements; length and rest of the last one
	for rest := in.Data; len(rest) > 0; {
		if len(rest) < 4 {
			//lint:ignore ST1005 Triton's wording
			return fmt.Errorf("incomplete string length indicator for inference input '%s' for model '%s', expecting 4 bytes but only %d bytes available. Please make sure the string length indicator is in one buffer.", in.Name, s.Name, len(rest))
		}
		if found++; found > elements {
			return fmt.Errorf("unexpected number of string elements %d for inference input '%s' for model '%s', expecting %d", found, in.Name, s.Name, elements)
		}
		length, left = uint64(binary.LittleEndian.Uint32(rest)), uint64(len(rest)-4)
		rest = rest[4+min(length, left):]
	}
	switch {
	case found < elements:
		return fmt.Errorf("expected %d string elements for inference input '%s' for model '%s', got %d", elements, in.Name, s.Name, found)
	case length > left:
		return fault.Errorf(fault.InvalidArgument, "incomplete string data for inference input '%s', expecting string of length %d but only %d bytes available", in.Name, length, left)
	}
	return nil
}

func (s *Signature) shapeError(spec *Spec, in *Tensor) error {
	want, note := spec.Dims, ""
	dims := in.Shape
	if s.MaxBatch > 0 {
		dims = dims[1:]
		want = append([]int64{-1}, want...)
		note = "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size."
	}
	if len(dims) == len(spec.Dims) && slices.Contains(dims, -1) {
		//lint:ignore ST1005 Triton's wording
		return fmt.Errorf("All input dimensions should be specified for input '%s' for model '%s', got %s", in.Name, s.Name, ShapeText(in.Shape))
	}
	return fmt.Errorf("unexpected shape for input '%s' for model '%s'. Expected %s, got %s. %s", in.Name, s.Name, ShapeText(want), ShapeText(in.Shape), note)
}

// wanted marks the outputs that a request asks for.
func (s *Signature) wanted(names []string) ([]bool, error) {
	if len(names) == 0 {
		return nil, nil
	}
	marks := make([]bool, len(s.Outputs))
	for _, name := range names {
		i, found := slices.BinarySearchFunc(s.Outputs, name, func(spec Spec, name string) int { return strings.Compare(spec.Name, name) })
		if !found || marks[i] {
			// Triton checks this first
			if twice := duplicate(names, func(n *string) string { return *n }); twice != "" {
				return nil, fmt.Errorf("output '%s' already exists in request", twice)
			}
			return nil, fault.Errorf(fault.InvalidArgument, "unexpected inference output '%s' for model '%s'", name, s.Name)
		}
		marks[i] = true
	}
	return marks, nil
}

// modelShape converts a request's shape to the model's. Dimensions of any size keep their order.
func (t *Spec) modelShape(shape []int64, batched bool) []int64 {
	return modelconfig.Reshaped(shape, t.Dims, t.Reshape, batched)
}

// RequestShape converts a shape of the model to the one that clients see.
func (t *Spec) RequestShape(shape []int64, batched bool) []int64 {
	return modelconfig.Reshaped(shape, t.Reshape, t.Dims, batched)
}

func matches(want, got []int64) bool {
	return slices.EqualFunc(want, got, func(w, g int64) bool { return g >= 0 && (w == -1 || w == g) })
}

// Product multiplies dimensions. It returns false if one is negative or the result does not fit
// into 63 bits.
func Product(dims []int64) (uint64, bool) {
	n, ok := uint64(1), true
	for _, d := range dims {
		n, ok = Multiply(n, uint64(d), ok && d >= 0)
	}
	return n, ok
}

// Multiply multiplies, unless ok is false. It returns false if the result does not fit into 63 bits.
func Multiply(a, b uint64, ok bool) (uint64, bool) {
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

// WireName returns the name of a data type on the wire.
func WireName(t DataType) string {
	if t == configpb.DataType_TYPE_INVALID {
		return "<invalid>"
	}
	return modelconfig.WireName(t)
}

// ShapeText formats a shape as Triton does: [-1,16].
func ShapeText(shape []int64) string {
	text := []byte{'['}
	for i, d := range shape {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, d, 10)
	}
	return string(append(text, ']'))
}

// RawInput guesses the shape of the only input from the amount of data.
func (s *Signature) RawInput(data []byte) (Tensor, error) {
	spec := s.Inputs[0]
	t := Tensor{Name: spec.Name, DataType: spec.DataType, Shape: slices.Clone(spec.Dims), Data: data}
	width := uint64(modelconfig.ByteSize(spec.DataType))
	if width == 0 {
		if !slices.Equal(spec.Dims, []int64{1}) {
			return t, fault.Errorf(fault.InvalidArgument, "%s For BYTE datatype raw input '%s', the model must have input shape [1]", IDPrefix(""), spec.Name)
		}
		width = max(1, uint64(len(data)))
		t.Data = append(binary.LittleEndian.AppendUint32(nil, uint32(len(data))), data...)
	}
	variable, fixed := -1, width
	for i, d := range t.Shape {
		switch {
		case d >= 0:
			fixed, _ = Multiply(fixed, uint64(d), true)
		case variable >= 0:
			return t, fault.Errorf(fault.InvalidArgument, "%s The shape of the raw input '%s' can not be deduced because there are more than one variable-sized dimension", IDPrefix(""), spec.Name)
		default:
			variable = i
		}
	}
	if variable >= 0 {
		t.Shape[variable] = int64(uint64(len(data)) / max(1, fixed))
		fixed *= uint64(t.Shape[variable]) // at most the amount of data
	}
	if fixed != uint64(len(data)) && spec.DataType != configpb.DataType_TYPE_STRING {
		return t, fault.Errorf(fault.InvalidArgument, "%s %v", IDPrefix(""), s.sizeError("raw_input", data, fixed))
	}
	if s.MaxBatch > 0 {
		t.Shape = append([]int64{1}, t.Shape...)
	}
	return t, nil
}
