// Package generate reads and writes Triton's generate extension: a request whose JSON is one object of
// inputs by their names, and an answer that is one object of outputs.
//
// It stands between package rest, which knows HTTP, and package document, which reads the JSON. It runs
// no model.
package generate

import (
	"cmp"
	"slices"
	"strconv"

	"tuner/engine/api"
	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/engine/rest/document"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// nested is the member whose own members count as members of the request.
const nested = "parameters"

// Decode reads a request for a model with these inputs from a flat document. It adds the inputs to r,
// with data in memory. Any other member is a parameter for the
// model, which ONNX models do not read. The order of the checks and their texts are Triton's.
func Decode(d *document.JSON, inputs []api.TensorMetadata, r *request.Request, memory *document.Memory[byte]) error {
	if i := d.Find(0, "id"); i != document.None {
		id, err := d.Text(i)
		if err != nil {
			return document.Unable("id", err)
		}
		r.ID = string(id)
	}
	if d.Kind(0) != '{' {
		return fault.Errorf(fault.Internal, "attempt to get members for non-object")
	}
	c := conversion{document: d, inputs: inputs, request: r, memory: memory}
	for i := range d.Content(0) {
		if string(d.Key(i)) != nested {
			if err := c.member(i); err != nil {
				return err
			}
			continue
		}
		if err := c.nested(i); err != nil {
			return err
		}
	}
	return nil
}

// conversion is a request that is being read.
type conversion struct {
	document *document.JSON
	inputs   []api.TensorMetadata
	request  *request.Request
	memory   *document.Memory[byte] // of the tensors
}

func (c *conversion) nested(object int32) error {
	if c.input([]byte(nested)) != nil {
		return fault.Errorf(fault.InvalidArgument, "Keyword '%s' for nested schema also given as input tensor name", nested)
	}
	if c.document.Kind(object) != '{' {
		return document.Within("Expected JSON object for keyword: '"+nested+"'", document.KindError("object"))
	}
	for i := range c.document.Content(object) {
		if err := c.member(i); err != nil {
			return document.Within("Converting keyword: '"+nested+"'", err)
		}
	}
	return nil
}

// input returns the model's input with a name. nil: the model does not have it.
func (c *conversion) input(name []byte) *api.TensorMetadata {
	for i := range c.inputs {
		if c.inputs[i].Name == string(name) {
			return &c.inputs[i]
		}
	}
	return nil
}

// member reads an input or a parameter.
func (c *conversion) member(i int32) error {
	key := c.document.Key(i)
	input := c.input(key)
	if input != nil {
		return c.tensor(i, input)
	}
	switch c.document.Kind(i) {
	case '{', '[', 'n':
		return fault.Errorf(fault.InvalidArgument, "parameter '%s' has invalid type. It should be either 'int', 'bool', or 'string'.", key)
	}
	return nil
}

// tensor reads an input: a value, or an array of values.
func (c *conversion) tensor(i int32, input *api.TensorMetadata) error {
	dataType, err := modelconfig.DataTypeOf(input.Datatype)
	if err != nil {
		return fault.Errorf(fault.InvalidArgument, "invalid datatype for input %s", input.Name)
	}
	count := c.document.Count(i)
	var data []byte
	if dataType == configpb.DataType_TYPE_STRING {
		text := c.document.Whole(i)
		// an element takes two quotes and a comma, and becomes four bytes of length
		if data, err = document.AppendStrings(c.memory.Room(len(text)+len(text)/2+4), text); err != nil {
			return document.Within("Unable to parse JSON bytes array", err)
		}
	}
	shape, err := fill(input, count)
	if err != nil {
		return err
	}
	switch dataType {
	case configpb.DataType_TYPE_STRING:
	case configpb.DataType_TYPE_FP16, configpb.DataType_TYPE_BF16:
		return fault.Errorf(fault.InvalidArgument, "receiving %s data via JSON is not supported. Please use the binary data format for input %s", input.Datatype, input.Name)
	default:
		room := c.memory.Room(int(count) * modelconfig.ByteSize(dataType))
		if data, err = document.AppendNumbers(room, c.document.Whole(i), dataType, count); err != nil {
			return document.Unable("data", err)
		}
	}
	if slices.ContainsFunc(c.request.Inputs, func(t request.Tensor) bool { return t.Name == input.Name }) {
		return fault.Errorf(fault.InvalidArgument, "%s input '%s' already exists in request", request.IDPrefix(c.request.ID), input.Name)
	}
	t := c.request.AddInput(c.document.Key(i))
	t.DataType, t.Shape, t.Data = dataType, shape, c.memory.Keep(data)
	return nil
}

// fill returns the shape of an input with so many elements: the last dimension of any size takes those
// that the fixed ones leave, and all others of any size are 1.
func fill(input *api.TensorMetadata, elements uint64) ([]int64, error) {
	rest, shape := int64(elements), slices.Clone(input.Shape)
	wrong := fault.Errorf(fault.InvalidArgument, "The schema can not convert input '%s' to tensor with proper shape", input.Name)
	for _, d := range shape {
		switch {
		case d == -1:
		case d < 1 || rest%d != 0:
			return nil, wrong
		default:
			rest /= d
		}
	}
	for i := range slices.Backward(shape) {
		if shape[i] == -1 {
			shape[i], rest = rest, 1
		}
	}
	if rest != 1 {
		return nil, wrong
	}
	return shape, nil
}

// Answer has the parts of an answer.
type Answer struct {
	ID, Model string
	Version   int64
	// it comes from an ensemble: Triton adds the parameters of a sequence to such answers
	IsComposed bool
	Outputs    []request.Tensor
}

// field is a member of an answer.
type field struct {
	name   string
	text   string          // its value as a string, or
	raw    string          // as JSON, or
	tensor *request.Tensor // as an output
}

// Append appends an answer to dst. As in Triton, members are in the order of their names, and an output
// does not take the name of another member. An output of one element is that element, any other is an
// array.
func Append(dst []byte, a *Answer) ([]byte, error) {
	for i, f := range a.fields() {
		separator := byte(',')
		if i == 0 {
			separator = '{'
		}
		dst = append(document.AppendQuoted(append(dst, separator), []byte(f.name)), ':')
		switch {
		case f.tensor == nil && f.raw == "":
			dst = document.AppendQuoted(dst, []byte(f.text))
		case f.tensor == nil:
			dst = append(dst, f.raw...)
		case f.tensor.DataType == configpb.DataType_TYPE_FP16 || f.tensor.DataType == configpb.DataType_TYPE_BF16:
			return dst, fault.Errorf(fault.InvalidArgument, "sending %s data via JSON is not supported. Please use the binary data format for output %s", modelconfig.WireName(f.tensor.DataType), f.name)
		default:
			dst = appendOutput(dst, f.tensor)
		}
	}
	return append(dst, '}'), nil
}

// fields returns the members in their order.
func (a *Answer) fields() []field {
	list := make([]field, 0, len(a.Outputs)+6) // 6: all others
	if a.ID != "" {
		list = append(list, field{name: "id", text: a.ID})
	}
	list = append(list, field{name: "model_name", text: a.Model}, field{name: "model_version", text: strconv.FormatInt(a.Version, 10)})
	if a.IsComposed {
		list = append(list, field{name: "sequence_id", raw: "0"}, field{name: "sequence_start", raw: "false"}, field{name: "sequence_end", raw: "false"})
	}
	for i := range a.Outputs {
		list = append(list, field{name: a.Outputs[i].Name, tensor: &a.Outputs[i]})
	}
	slices.SortStableFunc(list, func(x, y field) int { return cmp.Compare(x.name, y.name) })
	return slices.CompactFunc(list, func(x, y field) bool { return x.name == y.name })
}

func appendOutput(dst []byte, t *request.Tensor) []byte {
	from := len(dst)
	dst = document.AppendTensor(dst, t)
	if n, fits := request.Product(t.Shape); fits && n == 1 { // without its brackets
		dst = append(dst[:from], dst[from+1:len(dst)-1]...)
	}
	return dst
}
