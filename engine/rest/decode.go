package rest

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"tuner/engine"
	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/engine/rest/document"
	"tuner/engine/sequence"
	"tuner/engine/sharedmemory"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// maxTensors bounds the inputs, and the outputs, of a request.
const maxTensors = 1 << 16

// inferRequest is a decoded request, with the fields that decide the answer's form. Its memory is
// reused for later requests.
type inferRequest struct {
	engine.Request
	document  document.JSON
	binaryAll bool   // if no outputs are listed: all in binary form
	binary    []bool // of the listed outputs, by position
	regions   *sharedmemory.Regions
	loan      sharedmemory.Loan      // tensors in regions
	dims      document.Memory[int64] // of the shapes
	data      document.Memory[byte]  // of the tensors in JSON form
}

// reset drops the last request. Names keep their memory, since the next request probably has the
// same.
func (r *inferRequest) reset() {
	for i := range r.Inputs {
		r.Inputs[i].Shape, r.Inputs[i].Data = nil, nil
	}
	r.loan.Return()
	r.Request = engine.Request{Model: r.Model, Inputs: r.Inputs[:0], Outputs: r.Outputs[:0], Classes: r.Classes[:0], Rooms: r.Rooms[:0]}
	r.binaryAll, r.binary = false, r.binary[:0]
	r.dims.Clear(keptNodes)
	r.data.Clear(keptBuffer)
	r.document.Clear()
}

// decode reads the body of an infer request: header bytes of JSON, then the binary tensors. The
// request refers to the body's memory. The checks have Triton's order, so that a request with
// several mistakes gets Triton's message.
func (r *inferRequest) decode(body []byte, header int) error {
	if err := r.document.Parse(body[:header]); err != nil {
		return err
	}
	d := &r.document
	if i := d.Find(0, "id"); i != document.None {
		id, err := d.Text(i)
		if err != nil {
			return document.Unable("id", err)
		}
		r.ID = string(id)
	}
	if err := r.parameters(); err != nil {
		return err
	}
	if err := r.decodeInputs(body[header:]); err != nil {
		return err
	}
	return r.decodeOutputs()
}

// parameters reads the request's parameters. Unknown ones are for the model, and ONNX models ignore
// them.
func (r *inferRequest) parameters() error {
	d := &r.document
	all := d.Find(0, "parameters")
	switch {
	case all == document.None:
		return nil
	case d.Kind(all) != '{':
		return fault.Errorf(fault.Internal, "failed to get request params.: attempt to get members for non-object")
	}
	for i := range d.Content(all) {
		if err := r.parameter(i); err != nil {
			return err
		}
	}
	return nil
}

func (r *inferRequest) parameter(i int32) error {
	d := &r.document
	key := d.Key(i)
	var err error
	switch string(key) {
	case "binary_data_output":
		r.binaryAll, err = d.Bool(i)
	case "priority":
		r.Priority, err = d.Unsigned(i)
	case "timeout":
		var n uint64
		n, err = d.Unsigned(i)
		r.Timeout = request.Microseconds(n)
	case "sequence_start":
		r.Start, err = d.Bool(i)
	case "sequence_end":
		r.End, err = d.Bool(i)
	case "sequence_id":
		if r.Sequence.Number, err = d.Unsigned(i); err != nil {
			var text []byte
			text, err = d.Text(i)
			r.Sequence = sequence.ID{Text: string(text)}
		}
	default:
		return r.custom(key, d.Kind(i))
	}
	if err != nil {
		return document.Unable(string(key), err)
	}
	return nil
}

// custom checks a parameter that the server does not know.
func (r *inferRequest) custom(key []byte, kind byte) error {
	switch {
	case bytes.HasPrefix(key, []byte("triton_")):
		return fault.Errorf(fault.InvalidArgument, "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.")
	case kind == '{' || kind == '[' || kind == 'n':
		return fault.Errorf(fault.InvalidArgument, "parameter '%s' has invalid type. It should be either 'int', 'bool', or 'string'.", key)
	}
	return nil
}

// decodeInputs reads the inputs. Binary inputs take their data from the front of rest, one after
// the other.
func (r *inferRequest) decodeInputs(rest []byte) error {
	d := &r.document
	list, err := d.MemberArray(0, "inputs")
	if err != nil {
		return document.Unable("inputs", err)
	}
	for i := range d.Content(list) {
		if len(r.Inputs) == maxTensors {
			return fault.Errorf(fault.InvalidArgument, "request has more than %d inputs", maxTensors)
		}
		if rest, err = r.decodeInput(i, rest); err != nil {
			return err
		}
	}
	if len(rest) > 0 {
		return fault.Errorf(fault.InvalidArgument, "unexpected additional input data for model '%s'", r.Model)
	}
	return nil
}

// decodeInput reads one input and returns the rest of the binary data.
func (r *inferRequest) decodeInput(input int32, rest []byte) ([]byte, error) {
	d := &r.document
	data, size, region := d.Find(input, "data"), int32(document.None), int32(document.None)
	p := d.Find(input, "parameters")
	if p != document.None {
		size, region = d.Find(p, "binary_data_size"), d.Find(p, "shared_memory_region")
	}
	if err := onlyOne(data, size, region); err != nil {
		return nil, err
	}
	name, err := d.MemberString(input, "name")
	if err != nil {
		return nil, document.Unable("name", err)
	}
	t := r.AddInput(name)
	dataType, err := d.MemberString(input, "datatype")
	if err != nil {
		return nil, document.Unable("datatype", err)
	}
	setType(t, dataType)
	if t.Shape, err = r.shape(input); err != nil {
		return nil, document.Unable("shape", err)
	}
	if size != document.None {
		return r.cut(t, size, rest)
	}
	at, err := r.place(p)
	switch {
	case err != nil:
		return nil, err
	case region != document.None:
		t.Data, err = r.loan.Input(r.regions, r.Memory, at.region, at.offset, at.size)
		return rest, err
	}
	return rest, r.decodeData(t, data)
}

// onlyOne requires exactly one source of an input's data.
func onlyOne(data, size, region int32) error {
	set := ""
	n := 0
	for _, source := range [...]struct {
		node int32
		name string
	}{{data, " 'data'"}, {size, " 'binary_data_size'"}, {region, " 'shared_memory_region'"}} {
		if source.node != document.None {
			set += source.name
			n++
		}
	}
	switch n {
	case 1:
		return nil
	case 0:
		set = "no field is set"
	default:
		set = "set" + set
	}
	return fault.Errorf(fault.InvalidArgument, "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'. But %s", set)
}

// setType sets the type of a tensor by its name. TYPE_INVALID stands for an unknown one. If the
// type is the same as in the request before, it needs no look-up.
func setType(t *engine.Tensor, name []byte) {
	if modelconfig.WireName(t.DataType) == string(name) {
		return
	}
	var err error
	if t.DataType, err = modelconfig.DataTypeOf(string(name)); err != nil {
		t.DataType = configpb.DataType_TYPE_INVALID
	}
}

func (r *inferRequest) shape(input int32) ([]int64, error) {
	i, err := r.document.MemberArray(input, "shape")
	if err != nil {
		return nil, err
	}
	return r.document.Shape(&r.dims, i)
}

// cut takes a tensor's data from the front of the binary data and returns the rest.
func (r *inferRequest) cut(t *engine.Tensor, size int32, rest []byte) ([]byte, error) {
	n, err := r.document.Unsigned(size)
	if err != nil {
		return nil, document.Unable("binary_data_size", err)
	}
	if have := uint64(len(rest)); n > have {
		return nil, fault.Errorf(fault.InvalidArgument, "unexpected size for input '%s', expecting %d additional bytes for model '%s'", t.Name, n-have, r.Model)
	}
	t.Data = rest[:n:n]
	return rest[n:], nil
}

// decodeData converts the JSON array of an input to its data. For an empty tensor it does not read
// the array.
func (r *inferRequest) decodeData(t *engine.Tensor, array int32) error {
	count, ok := elementCount(t.Shape)
	switch {
	case !ok:
		return fault.Errorf(fault.InvalidArgument, "shape of input '%s' has too many elements", t.Name)
	case count == 0:
		return nil
	case r.document.Kind(array) != '[':
		return document.Unable("data", document.KindError("array"))
	}
	raw := r.document.Raw(array)
	switch t.DataType {
	case configpb.DataType_TYPE_FP16, configpb.DataType_TYPE_BF16:
		return fault.Errorf(fault.InvalidArgument, "receiving %s data via JSON is not supported. Please use the binary data format for input %s", modelconfig.WireName(t.DataType), t.Name)
	case configpb.DataType_TYPE_INVALID:
		return fault.Errorf(fault.InvalidArgument, "invalid datatype for input %s", t.Name)
	case configpb.DataType_TYPE_STRING:
		data, err := document.AppendStrings(r.data.Room(len(raw)+len(raw)/2), raw)
		if err != nil {
			return document.Within("Unable to parse JSON bytes array", err)
		}
		t.Data = r.data.Keep(data)
		return nil
	}
	// Each element needs at least two characters of JSON, which bounds the memory.
	size := min(count, uint64(len(raw)/2)) * uint64(modelconfig.ByteSize(t.DataType))
	data, err := document.AppendNumbers(r.data.Room(int(size)), raw, t.DataType, count)
	if err != nil {
		return document.Unable("data", err)
	}
	t.Data = r.data.Keep(data)
	return nil
}

// elementCount returns the number of elements of a shape. It returns false if the number is too
// large for any memory. A shape without dimensions counts as empty, as in Triton.
func elementCount(shape []int64) (uint64, bool) {
	if len(shape) == 0 || slices.Contains(shape, 0) {
		return 0, true
	}
	return request.Product(shape)
}

// decodeOutputs reads the wanted outputs, and their forms.
func (r *inferRequest) decodeOutputs() error {
	d := &r.document
	list := d.Find(0, "outputs")
	switch {
	case list == document.None:
		return nil
	case d.Kind(list) != '[':
		return document.Unable("outputs", document.KindError("array"))
	}
	for i := range d.Content(list) {
		if len(r.Outputs) == maxTensors {
			return fault.Errorf(fault.InvalidArgument, "request has more than %d outputs", maxTensors)
		}
		if err := r.onlyRegion(i); err != nil {
			return err
		}
		name, err := d.MemberString(i, "name")
		if err != nil {
			return document.Unable("name", err)
		}
		r.AddOutput(name)
		binary, err := r.outputForm(i)
		if err != nil {
			return err
		}
		r.binary = append(r.binary, binary)
	}
	return nil
}

// outputForm reports whether an output is wanted in binary form.
func (r *inferRequest) outputForm(output int32) (binary bool, err error) {
	d := &r.document
	p := d.Find(output, "parameters")
	if p == document.None {
		return false, nil
	}
	if i := d.Find(p, "classification"); i != document.None {
		classes, err := d.Unsigned(i)
		if err != nil {
			return false, document.Within("Unable to set 'classification'", err)
		}
		if classes > 0 && d.Find(p, "shared_memory_region") == document.None {
			r.Classify(uint32(min(classes, math.MaxUint32)))
		}
	}
	at, err := r.place(p)
	if err != nil {
		return false, err
	}
	if d.Find(p, "shared_memory_region") != document.None {
		name := r.Outputs[len(r.Outputs)-1]
		r.Rooms = append(r.Rooms, request.Room{Output: name, Bytes: at.size})
		return false, r.loan.Output(r.regions, name, at.region, at.offset, at.size)
	}
	if i := d.Find(p, "binary_data"); i != document.None {
		binary, err = d.Bool(i)
	}
	return binary, document.Unable("binary_data", err)
}

// isBinary reports whether an output is wanted in binary form.
func (r *inferRequest) isBinary(name string) bool {
	if len(r.Outputs) == 0 {
		return r.binaryAll
	}
	i := slices.Index(r.Outputs, name)
	return i >= 0 && r.binary[i]
}

// headerLength reads the length of the JSON part. Without the header the whole body is JSON.
func headerLength(value []byte, body int) (int, error) {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return body, nil
	}
	n, err := strconv.ParseInt(string(value), 10, 32)
	if err != nil || n < 0 || n > int64(body) {
		return 0, fault.Errorf(fault.InvalidArgument, "inference header size should be in range (0, %d), got: %s", body, value)
	}
	return int(n), nil
}
