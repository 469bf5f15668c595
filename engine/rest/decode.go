package rest

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"tuner/engine"
	"tuner/modelconfig"
	"tuner/modelconfig/configpb"
)

// maxTensors bounds the inputs and the outputs of a request.
const maxTensors = 1 << 16

// inferRequest is a decoded request with what the answer's form depends on.
type inferRequest struct {
	engine.Request
	binaryAll bool            // with no outputs listed: all in binary form
	binary    map[string]bool // of the listed outputs
}

// inputHeader is an input as the JSON part describes it.
type inputHeader struct {
	tensor engine.Tensor
	data   []byte // the JSON array; nil: none
	size   int64  // of the binary data; -1: none
}

// decodeInfer reads the body of an infer request: header bytes of JSON, then the binary tensors. The request refers to
// the body's memory. jsonLimit bounds the JSON and each tensor in it, in bytes.
func decodeInfer(model string, body []byte, header, jsonLimit int) (*inferRequest, error) {
	if header > jsonLimit {
		return nil, engine.Errorf(engine.InvalidArgument, "request JSON size of %d bytes exceeds the maximum allowed input size of %d bytes. Use --http-max-input-size to increase the limit.", header, jsonLimit)
	}
	r := &inferRequest{Request: engine.Request{Model: model}, binary: map[string]bool{}}
	var inputs []inputHeader
	s := &scanner{data: body[:header]}
	err := s.object(func(key string) error {
		var err error
		switch key {
		case "id":
			r.ID, err = s.text()
		case "parameters":
			err = r.parameters(s)
		case "inputs":
			inputs, err = decodeInputs(s)
		case "outputs":
			err = r.outputs(s)
		default:
			err = s.skipOne()
		}
		return inField(key, err)
	})
	var kind *kindError
	switch {
	case err == nil:
		err = s.end()
	case errors.As(err, &kind): // the whole is no object
		err = missing("inputs")
	}
	if err != nil {
		return nil, parseError(err)
	}
	if inputs == nil {
		return nil, missing("inputs")
	}
	r.Inputs = make([]engine.Tensor, 0, len(inputs))
	rest := body[header:]
	for i := range inputs {
		if rest, err = inputs[i].fill(rest, model, jsonLimit); err != nil {
			return nil, err
		}
		r.Inputs = append(r.Inputs, inputs[i].tensor)
	}
	if len(rest) > 0 {
		return nil, engine.Errorf(engine.InvalidArgument, "unexpected additional input data for model '%s'", model)
	}
	return r, nil
}

// parseError classes an error of the JSON part: its syntax is an internal error in Triton's terms.
func parseError(err error) error {
	var known *engine.Error
	if errors.As(err, &known) {
		return err
	}
	return engine.Errorf(engine.Internal, "failed to parse the request JSON buffer: %v", err)
}

// inField says in which field a value of the wrong kind was found.
func inField(key string, err error) error {
	var kind *kindError
	switch {
	case !errors.As(err, &kind):
		return err
	case key == "parameters":
		return engine.Errorf(engine.Internal, "failed to get request params.: attempt to get members for non-object")
	}
	return engine.Errorf(engine.Internal, "Unable to parse '%s': %v", key, kind)
}

// parameters reads the request's parameters; those that the server does not know are for the model, which ONNX models ignore.
func (r *inferRequest) parameters(s *scanner) error {
	return s.object(func(key string) error {
		switch key {
		case "binary_data_output":
			var err error
			r.binaryAll, err = s.boolean(key)
			return err
		case "priority":
			n, err := s.unsigned(key)
			r.Priority = n
			return err
		case "timeout":
			n, err := s.unsigned(key)
			r.Timeout = time.Duration(min(n, uint64(math.MaxInt64/time.Microsecond))) * time.Microsecond
			return err
		case "sequence_id", "sequence_start", "sequence_end":
			return s.skipOne()
		}
		if strings.HasPrefix(key, "triton_") {
			return engine.Errorf(engine.InvalidArgument, "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.")
		}
		switch s.peek() {
		case '{', '[', 'n':
			return engine.Errorf(engine.InvalidArgument, "parameter '%s' has invalid type. It should be either 'int', 'bool', or 'string'.", key)
		}
		return s.skipOne()
	})
}

func (s *scanner) boolean(key string) (bool, error) {
	w, err := s.word()
	if err != nil || string(w) != "true" && string(w) != "false" {
		return false, inField(key, &kindError{"boolean"})
	}
	return string(w) == "true", nil
}

func (s *scanner) unsigned(key string) (uint64, error) {
	w, err := s.word()
	if err == nil {
		var n uint64
		if n, err = strconv.ParseUint(string(w), 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, inField(key, &kindError{"unsigned-integer"})
}

func decodeInputs(s *scanner) ([]inputHeader, error) {
	inputs := []inputHeader{}
	err := s.array(func() error {
		if len(inputs) == maxTensors {
			return engine.Errorf(engine.InvalidArgument, "request has more than %d inputs", maxTensors)
		}
		in, err := decodeInput(s)
		inputs = append(inputs, in)
		return err
	})
	return inputs, err
}

func decodeInput(s *scanner) (inputHeader, error) {
	in := inputHeader{size: -1}
	var named, shaped, typed, invalid bool
	err := s.object(func(key string) error {
		var err error
		switch key {
		case "name":
			named = true
			in.tensor.Name, err = s.text()
		case "datatype":
			typed = true
			in.tensor.DataType, err = decodeType(s)
			invalid = err == nil && in.tensor.DataType == configpb.DataType_TYPE_INVALID
		case "shape":
			shaped = true
			in.tensor.Shape, err = decodeShape(s)
		case "data":
			in.data, err = s.skip()
		case "parameters":
			err = in.parameters(s)
		default:
			err = s.skipOne()
		}
		return inField(key, err)
	})
	switch {
	case err != nil:
	case in.size < 0 && in.data == nil:
		err = engine.Errorf(engine.InvalidArgument, "%s But no field is set", onlyOne)
	case in.size >= 0 && in.data != nil:
		err = engine.Errorf(engine.InvalidArgument, "%s But set 'data' 'binary_data_size'", onlyOne)
	case !named:
		err = missing("name")
	case !shaped:
		err = missing("shape")
	case !typed:
		err = missing("datatype")
	case invalid:
		err = engine.Errorf(engine.InvalidArgument, "invalid datatype for input %s", in.tensor.Name)
	}
	return in, err
}

const onlyOne = "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'."

func missing(key string) error {
	return engine.Errorf(engine.Internal, "Unable to parse '%s': attempt to access non-existing object member '%s'", key, key)
}

// decodeType reads a data type's name; TYPE_INVALID is an unknown one.
func decodeType(s *scanner) (engine.DataType, error) {
	raw, _, err := s.rawText()
	if err != nil {
		return 0, err
	}
	t, err := modelconfig.DataTypeOf(string(raw))
	if err != nil {
		return configpb.DataType_TYPE_INVALID, nil
	}
	return t, nil
}

func decodeShape(s *scanner) ([]int64, error) {
	shape := make([]int64, 0, 4)
	err := s.array(func() error {
		w, err := s.word()
		if err != nil {
			return err
		}
		d, err := strconv.ParseInt(string(w), 10, 64)
		if err != nil || d < 0 {
			return &kindError{"unsigned-integer"}
		}
		shape = append(shape, d)
		return nil
	})
	return shape, err
}

func (in *inputHeader) parameters(s *scanner) error {
	return s.object(func(key string) error {
		switch key {
		case "binary_data_size":
			n, err := s.unsigned(key)
			if err == nil && n > math.MaxInt32 {
				err = engine.Errorf(engine.InvalidArgument, "Unable to parse 'binary_data_size': %d is too large", n)
			}
			in.size = int64(n)
			return err
		case "shared_memory_region", "shared_memory_offset", "shared_memory_byte_size":
			return engine.Errorf(engine.Unsupported, "Client shared memory is disabled")
		}
		return s.skipOne()
	})
}

// fill takes the tensor's data from the JSON, or from the front of the binary data, and returns the rest of that.
func (in *inputHeader) fill(binary []byte, model string, limit int) ([]byte, error) {
	switch {
	case in.size > int64(len(binary)):
		return nil, engine.Errorf(engine.InvalidArgument, "unexpected size for input '%s', expecting %d additional bytes for model '%s'", in.tensor.Name, in.size-int64(len(binary)), model)
	case in.size >= 0:
		in.tensor.Data = binary[:in.size:in.size]
		return binary[in.size:], nil
	}
	return binary, in.decodeData(limit)
}

// decodeData turns the JSON array into the tensor's data.
func (in *inputHeader) decodeData(limit int) error {
	t := &in.tensor
	if t.DataType == configpb.DataType_TYPE_FP16 || t.DataType == configpb.DataType_TYPE_BF16 {
		return engine.Errorf(engine.InvalidArgument, "receiving %s data via JSON is not supported. Please use the binary data format for input %s", modelconfig.WireName(t.DataType), t.Name)
	}
	count := uint64(1)
	for _, d := range t.Shape {
		high, low := bits.Mul64(count, uint64(d))
		if high != 0 || low > math.MaxInt32 {
			return engine.Errorf(engine.InvalidArgument, "shape of input '%s' has too many elements", t.Name)
		}
		count = low
	}
	size := count * uint64(max(1, modelconfig.ByteSize(t.DataType)))
	if size > uint64(limit) {
		return engine.Errorf(engine.InvalidArgument, "input '%s' of %d bytes exceeds the maximum allowed input size of %d bytes. Use --http-max-input-size to increase the limit.", t.Name, size, limit)
	}
	// The JSON needs at least two characters for each element, so that is all the memory that it can ask for.
	t.Data = make([]byte, 0, min(size, uint64(len(in.data)+1)/2*8))
	data, n, err := appendData(t.Data, in.data, t.DataType)
	if err != nil && t.DataType == configpb.DataType_TYPE_STRING {
		return engine.Errorf(engine.Internal, "Unable to parse JSON bytes array: %v", err)
	}
	if err != nil {
		return engine.Errorf(engine.Internal, "Unable to parse 'data': %v", err)
	}
	if uint64(n) != count {
		return engine.Errorf(engine.Internal, "Unable to parse 'data': Shape does not match true shape of 'data' field")
	}
	t.Data = data
	return nil
}

// outputs reads which outputs are wanted, and in which form.
func (r *inferRequest) outputs(s *scanner) error {
	return s.array(func() error {
		name, binary, named := "", false, false
		err := s.object(func(key string) error {
			var err error
			switch key {
			case "name":
				named = true
				name, err = s.text()
			case "parameters":
				binary, err = outputParameters(s)
			default:
				err = s.skipOne()
			}
			return inField(key, err)
		})
		if err == nil && !named {
			err = missing("name")
		}
		if err != nil {
			return err
		}
		if _, again := r.binary[name]; !again {
			r.Outputs = append(r.Outputs, name)
		}
		r.binary[name] = binary
		if len(r.Outputs) > maxTensors {
			return engine.Errorf(engine.InvalidArgument, "request has more than %d outputs", maxTensors)
		}
		return nil
	})
}

func outputParameters(s *scanner) (binary bool, err error) {
	err = s.object(func(key string) error {
		switch key {
		case "binary_data":
			binary, err = s.boolean(key)
			return err
		case "classification":
			return engine.Errorf(engine.Unsupported, "the classification extension is not supported")
		case "shared_memory_region", "shared_memory_offset", "shared_memory_byte_size":
			return engine.Errorf(engine.Unsupported, "Client shared memory is disabled")
		}
		return s.skipOne()
	})
	return binary, err
}

// isBinary reports in which form an output is wanted.
func (r *inferRequest) isBinary(name string) bool {
	if len(r.Outputs) == 0 {
		return r.binaryAll
	}
	return r.binary[name]
}

// headerLength reads the length of the JSON part; without the header the whole body is JSON.
func headerLength(value []byte, body int) (int, error) {
	if len(value) == 0 {
		return body, nil
	}
	n, err := strconv.ParseInt(string(value), 10, 32)
	if err != nil || n < 0 || n > int64(body) {
		return 0, fmt.Errorf("inference header size should be in range (0, %d), got: %s", body, value)
	}
	return int(n), nil
}
