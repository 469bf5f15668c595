package rest_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"tuner/model/modelconfig/configpb"
)

// FuzzRequest tests all bytes that a client sends for an inference: the length of the JSON as a
// header, and the body. There is always an answer, in JSON for a refusal. A tensor in binary form
// comes back unchanged.
func FuzzRequest(f *testing.F) {
	e := typed(f, configpb.DataType_TYPE_INT32, -1, -1)
	const head = `{"inputs":[{"name":"X","shape":[1,1],"datatype":"INT32","parameters":{"binary_data_size":4}}],"parameters":{"binary_data_output":true}}`
	f.Add(strconv.Itoa(len(head)), []byte(head+"\x01\x00\x00\x00"))
	f.Add("0", []byte("\x01\x00\x00\x00"))
	f.Add("0", []byte("abc"))
	f.Add("-1", []byte("{}"))
	f.Add("x", []byte("{}"))
	f.Add("", []byte(`{"inputs":[{"name":"X","shape":[1,2],"datatype":"INT32","data":[1,2]}]}`))
	f.Fuzz(func(t *testing.T, length string, body []byte) {
		if strings.ContainsFunc(length, func(r rune) bool { return r < ' ' || r > '~' }) {
			return // not a valid HTTP header
		}
		got := call(t, e, "POST", "/v2/models/fake/infer", string(body), "Inference-Header-Content-Length", length)
		switch {
		case got.status >= 400 && !json.Valid([]byte(got.body)):
			t.Errorf("%q %q was refused with %q", length, body, got.body)
		case got.status == 200 && length == "0" && !bytes.HasSuffix([]byte(got.body), body):
			t.Errorf("raw %q was answered with %q", body, got.body)
		}
	})
}
