package rest

import (
	"bytes"
	"testing"

	"tuner/engine"
	"tuner/engine/rest/document"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// FuzzInferRequest tests the reader of infer requests. It must never panic, and must not take more
// memory than the input justifies. An accepted request must stay the same when it is written and
// read again.
func FuzzInferRequest(f *testing.F) {
	for _, seed := range []string{
		`{"id":"1","inputs":[{"name":"a","shape":[1,2],"datatype":"INT32","data":[[1,-2]]}],"outputs":[{"name":"b"}]}`,
		`{"inputs":[{"name":"a","shape":[2],"datatype":"BYTES","data":["\u00fc","\ud83d\ude00"]}]}`,
		`{"inputs":[{"name":"a","shape":[2],"datatype":"FP32","data":[NaN,-Infinity]}],"parameters":{"binary_data_output":true}}`,
		`{"inputs":[{"name":"a","shape":[2],"datatype":"BOOL","data":[true,false]},{"name":"b","shape":[1],"datatype":"UINT64","data":[18446744073709551615]}]}`,
		`{"inputs":[{"name":"a","shape":[4611686018427387904,4],"datatype":"INT32","data":[]}]}`,
		`{"inputs":[{"name":"a","shape":[1],"datatype":"INT8","parameters":{"shared_memory_region":"r","shared_memory_offset":1,"shared_memory_byte_size":18446744073709551615}}]}`,
		`{"inputs":[{"name":"a","shape":[0],"datatype":"FP64","data":[]}],"outputs":[{"name":"b","parameters":{"shared_memory_region":"r","binary_data":false}}]}`,
		`{"inputs":[{"name":"a","shape":[0],"datatype":"FP64","data":[]}],"x":{"y":[null,1e5,"\\"]}}`,
	} {
		f.Add([]byte(seed), len(seed))
	}
	binary := `{"inputs":[{"name":"a","shape":[1],"datatype":"INT32","parameters":{"binary_data_size":4}}]}`
	f.Add([]byte(binary+"\x01\x00\x00\x00"), len(binary))
	f.Fuzz(func(t *testing.T, body []byte, header int) {
		if header < 0 || header > len(body) {
			return
		}
		r := &inferRequest{Request: engine.Request{Model: "m"}}
		if r.decode(body, header) != nil {
			return
		}
		for i := range r.Inputs {
			in := &r.Inputs[i]
			if in.DataType == configpb.DataType_TYPE_INVALID {
				continue
			}
			if len(in.Data) > 8*len(body)+8 {
				t.Errorf("%d bytes of data from a body of %d bytes", len(in.Data), len(body))
			}
			checkRoundTrip(t, in, header < len(body))
		}
	})
}

// checkRoundTrip writes a tensor as JSON and reads it again.
func checkRoundTrip(t *testing.T, in *engine.Tensor, maybeBinary bool) {
	half := in.DataType == configpb.DataType_TYPE_FP16 || in.DataType == configpb.DataType_TYPE_BF16
	width := modelconfig.ByteSize(in.DataType)
	if half || maybeBinary && (width == 0 || len(in.Data)%width != 0) {
		return // it can be written as JSON only after the check against a model
	}
	text := document.AppendTensor(nil, in)
	data, err := readAgain(text, in.DataType)
	if err != nil {
		t.Fatalf("cannot read %s again: %v", text, err)
	}
	if in.DataType == configpb.DataType_TYPE_BOOL && maybeBinary {
		return // any byte except 0 is true
	}
	if in.DataType == configpb.DataType_TYPE_FP32 || in.DataType == configpb.DataType_TYPE_FP64 {
		// NaNs have many forms
		text, data = document.AppendTensor(nil, &engine.Tensor{DataType: in.DataType, Data: data}), document.AppendTensor(nil, in)
		in = &engine.Tensor{Data: text}
	}
	if !bytes.Equal(data, in.Data) {
		t.Fatalf("%q became %q through %s", in.Data, data, text)
	}
}

// readAgain reads an array of any length.
func readAgain(text []byte, dataType engine.DataType) ([]byte, error) {
	if err := new(document.JSON).Parse(text); err != nil {
		return nil, err
	}
	if dataType == configpb.DataType_TYPE_STRING {
		return document.AppendStrings(nil, text)
	}
	count := bytes.Count(text, []byte(","))
	if len(text) > len("[]") {
		count++
	}
	return document.AppendNumbers(nil, text, dataType, uint64(count))
}

// FuzzRoute tests targets of requests. Each route has one spelling.
func FuzzRoute(f *testing.F) {
	for _, seed := range []string{"/v2", "/v2/", "//v2", "/v2/health/live", "/v2/models/m/versions/1/infer", "/v2/models/m%2finfer", "/v2/repository/r/models/m/load?x=1", "http://h/v2/models/stats", "/v2/models/../models/m"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, target []byte) {
		r := routeOf(target)
		if r.verb == noVerb {
			return
		}
		path, _, _ := bytes.Cut(target, []byte("?"))
		if rest, ok := bytes.CutPrefix(path, []byte("http://")); ok {
			path = rest[bytes.IndexByte(rest, '/'):]
		}
		if bytes.Contains(path, []byte("//")) || bytes.HasSuffix(path, []byte("/")) || !bytes.HasPrefix(path, []byte("/v2")) {
			t.Errorf("%q is a route: %+v", target, r)
		}
		if bytes.ContainsRune(r.model, '/') || len(r.version) > 0 && !isDigits(r.version) {
			t.Errorf("%q is a route to %q, %q", target, r.model, r.version)
		}
	})
}
