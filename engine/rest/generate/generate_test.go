package generate_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"tuner/engine/api"
	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/engine/rest/document"
	"tuner/engine/rest/generate"
	"tuner/internal/alloctest"
	"tuner/model/modelconfig/configpb"
)

// inputs of a model with all that a request can have.
var inputs = []api.TensorMetadata{
	{Name: "n", Datatype: "INT32", Shape: []int64{-1}},
	{Name: "batch", Datatype: "INT16", Shape: []int64{-1, 2, -1}},
	{Name: "one", Datatype: "UINT8", Shape: []int64{1}},
	{Name: "f", Datatype: "FP32", Shape: []int64{-1, 1}},
	{Name: "b", Datatype: "BOOL", Shape: []int64{-1}},
	{Name: "s", Datatype: "BYTES", Shape: []int64{-1, -1}},
	{Name: "h", Datatype: "FP16", Shape: []int64{-1}},
}

func decode(t *testing.T, text string) (*request.Request, error) {
	t.Helper()
	d := &document.JSON{}
	if err := d.ParseFlat([]byte(text)); err != nil {
		t.Fatal(err)
	}
	r := &request.Request{}
	err := generate.Decode(d, inputs, r, &document.Memory[byte]{})
	return r, err
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		shape []int64 // of the only input
		data  string
	}{
		{`{"n":5}`, []int64{1}, "\x05\x00\x00\x00"},
		{`{"n":[5,-1],"other":"x","more":1.5,"id":"7"}`, []int64{2}, "\x05\x00\x00\x00\xff\xff\xff\xff"},
		{`{"n":[]}`, []int64{0}, ""},
		{`{"parameters":{"n":[ [5] , [6] ],"p":true}}`, []int64{2}, "\x05\x00\x00\x00\x06\x00\x00\x00"},
		{`{"batch":[1,2,3,4]}`, []int64{1, 2, 2}, "\x01\x00\x02\x00\x03\x00\x04\x00"}, // the last one takes 4/2
		{`{"one":3}`, []int64{1}, "\x03"},
		{`{"f":[1,0.5]}`, []int64{2, 1}, "\x00\x00\x80\x3f\x00\x00\x00\x3f"},
		{`{"b":[true,false]}`, []int64{2}, "\x01\x00"},
		{`{"s":"a\"b"}`, []int64{1, 1}, "\x03\x00\x00\x00a\"b"},
		{`{"s":["","],["]}`, []int64{1, 2}, "\x00\x00\x00\x00\x03\x00\x00\x00],["},
	} {
		r, err := decode(t, c.text)
		if err != nil || len(r.Inputs) != 1 {
			t.Errorf("%s: %v, %d inputs", c.text, err, len(r.Inputs))
			continue
		}
		in := r.Inputs[0]
		if string(in.Data) != c.data || len(in.Shape) != len(c.shape) {
			t.Errorf("%s: got %q %v, want %q %v", c.text, in.Data, in.Shape, c.data, c.shape)
			continue
		}
		for i, d := range in.Shape {
			if d != c.shape[i] {
				t.Errorf("%s: shape %v, want %v", c.text, in.Shape, c.shape)
			}
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	const shape = "The schema can not convert input '"
	for _, c := range []struct {
		text string
		code fault.Code
		want string
	}{
		{`[]`, fault.Internal, "attempt to get members for non-object"},
		{`{"id":5}`, fault.Internal, "Unable to parse 'id': attempt to access JSON non-string as string"},
		{`{"parameters":5}`, fault.Internal, "Expected JSON object for keyword: 'parameters': attempt to access JSON non-object as object"},
		{`{"parameters":{"x":[]}}`, fault.InvalidArgument, "Converting keyword: 'parameters': parameter 'x' has invalid type."},
		{`{"x":null}`, fault.InvalidArgument, "parameter 'x' has invalid type."},
		{`{"n":1,"n":1}`, fault.InvalidArgument, "input 'n' already exists in request"},
		{`{"n":"5"}`, fault.Internal, "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer"},
		{`{"n":[[1,2],[3]]}`, fault.Internal, "Unable to parse 'data': Shape does not match true shape of 'data' field"},
		{`{"n":{"a":1}}`, fault.Internal, "Unable to parse 'data': "},
		{`{"n":null}`, fault.Internal, "Unable to parse 'data': "},
		{`{"batch":[1,2,3]}`, fault.InvalidArgument, shape + "batch'"}, // 3 is no multiple of 2
		{`{"one":[1,2]}`, fault.InvalidArgument, shape + "one'"},
		{`{"one":[]}`, fault.InvalidArgument, shape + "one'"},
		{`{"s":[1]}`, fault.Internal, "Unable to parse JSON bytes array: attempt to access JSON non-string as string"},
		{`{"h":1}`, fault.InvalidArgument, "receiving FP16 data via JSON is not supported."},
	} {
		if _, err := decode(t, c.text); err == nil || fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.text, err, c.want)
		}
	}
}

func TestAppend(t *testing.T) {
	t.Parallel()
	tensor := func(name string, shape []int64, data string) request.Tensor {
		return request.Tensor{Name: name, DataType: configpb.DataType_TYPE_INT8, Shape: shape, Data: []byte(data)}
	}
	for want, a := range map[string]generate.Answer{
		`{"id":"7","model_name":"m","model_version":"3","x":[1,2]}`: {ID: "7", Model: "m", Version: 3, Outputs: []request.Tensor{tensor("x", []int64{1, 2}, "\x01\x02")}},
		`{"a":5,"model_name":"m","model_version":"1","z":[]}`:       {Model: "m", Version: 1, Outputs: []request.Tensor{tensor("a", nil, "\x05"), tensor("z", []int64{0, 1}, "")}},
		// the name of the output is taken
		`{"model_name":"m","model_version":"1"}`: {Model: "m", Version: 1, Outputs: []request.Tensor{tensor("model_name", []int64{1}, "\x01")}},
		`{"model_name":"m","model_version":"1","sequence_end":false,"sequence_id":0,"sequence_start":false}`: {Model: "m", Version: 1, IsComposed: true},
	} {
		if got, err := generate.Append(nil, &a); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	half := request.Tensor{Name: "x", DataType: configpb.DataType_TYPE_FP16, Shape: []int64{1}, Data: []byte("ab")}
	if _, err := generate.Append(nil, &generate.Answer{Outputs: []request.Tensor{half}}); fault.CodeOf(err) != fault.InvalidArgument {
		t.Errorf("a half float: %v", err)
	}
}

// FuzzDecode reads any JSON as a request. An accepted input has as many elements as its shape says, unless
// they are strings, which are checked against a model later. An answer with the inputs as outputs is JSON,
// and is read as the same inputs.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"n":[1,2],"s":["a","\u00fc"],"b":true,"f":[1e3,NaN],"id":"x","parameters":{"one":7,"k":1}}`,
		`{"batch":[[1,2],[3,4]],"x":{}}`, `{"s":[["a"],"b"]}`, `{"n":"5"}`, `[1]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d := &document.JSON{}
		if d.ParseFlat(text) != nil {
			return
		}
		bound := alloctest.Bound(t, len(text))
		r := &request.Request{}
		err := generate.Decode(d, inputs, r, &document.Memory[byte]{})
		bound()
		if err != nil {
			return
		}
		for i := range r.Inputs {
			in := &r.Inputs[i]
			n, _ := request.Product(in.Shape)
			if width := map[string]uint64{"n": 4, "batch": 2, "one": 1, "f": 4, "b": 1}[in.Name]; width != 0 && uint64(len(in.Data)) != n*width {
				t.Errorf("%q: %d bytes for shape %v of %s", text, len(in.Data), in.Shape, in.Name)
			}
			if in.Name == "s" && countStrings(in.Data) != n {
				return // no answer has it
			}
		}
		checkAgain(t, r)
	})
}

// countStrings returns the number of strings in a tensor's data.
func countStrings(data []byte) (n uint64) {
	for ; len(data) > 0; n++ {
		data = data[4+binary.LittleEndian.Uint32(data):]
	}
	return n
}

func checkAgain(t *testing.T, r *request.Request) {
	answer, err := generate.Append(nil, &generate.Answer{Model: "m", Version: 1, Outputs: r.Inputs})
	if err != nil {
		t.Fatal(err)
	}
	d, again := &document.JSON{}, &request.Request{}
	if err := d.ParseFlat(answer); err != nil {
		t.Fatalf("cannot read %s: %v", answer, err)
	}
	if bytes.Contains(answer, []byte(`"s":`)) && !json.Valid(answer) {
		return // strings that are not UTF-8, or NaN
	}
	err = generate.Decode(d, inputs, again, &document.Memory[byte]{})
	if err != nil || len(again.Inputs) != len(r.Inputs) {
		t.Fatalf("cannot decode %s: %v", answer, err)
	}
	second, err := generate.Append(nil, &generate.Answer{Model: "m", Version: 1, Outputs: again.Inputs})
	if err != nil || !bytes.Equal(answer, second) {
		t.Errorf("%s became %s, %v", answer, second, err)
	}
}
