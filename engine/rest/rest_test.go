package rest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"tuner/engine/enginetest"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// answer is the client's view of an answer.
type answer struct {
	status int
	body   string
	header http.Header
	isLast bool // the server announces that it closes the connection
}

func call(t testing.TB, e *enginetest.Engine, method, path, body string, header ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+e.Addresses.HTTP+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if r.Header.Get("Accept-Encoding") == "" {
		r.Header.Set("Accept-Encoding", "identity") // net/http's own wish is gzip
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, string(text), response.Header, response.Close}
}

func one(name string, values string) string {
	return `{"name":"` + name + `","datatype":"INT32","shape":[1,16],"data":` + values + `}`
}

const (
	counted = "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,-15]"
	nested  = "[[0,1,2,3,4,5,6,7],[[8,9,10,11],[12,13,14,-15]]]"
	failure = `{"error":"`
)

func TestRoutes(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	good := `{"inputs":[` + one("INPUT0", counted) + `,` + one("INPUT1", nested) + `]}`
	const output = `"datatype":"INT32","shape":[1,16],"data":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,-15]}`
	for _, tc := range []struct {
		method, path, body string
		status             int
		want               string // the whole body, or its beginning if it ends with …
	}{
		{"GET", "/v2/health/live", "", 200, ""},
		{"GET", "/v2/health/ready", "", 200, ""},
		{"GET", "/v2/health/well", "", 404, `{"error":"Not Found"}`},
		{"GET", "/v1", "", 404, `{"error":"Not Found"}`},
		{"POST", "/v2", "", 405, `{"error":"Method Not Allowed"}`},
		{"GET", "/v2", "", 200, `{"name":"triton","version":"test","extensions":["classification","sequence","model_repository",…`},
		{"GET", "/v2/models/fake", "", 200, `{"name":"fake","versions":["1"],"platform":"onnxruntime_onnx","inputs":[{"name":"INPUT0","datatype":"INT32","shape":[-1,16]},{"name":"INPUT1","datatype":"INT32","shape":[-1,16]}],"outputs":[{"name":"OUTPUT0","datatype":"INT32","shape":[-1,16]},{"name":"OUTPUT1","datatype":"INT32","shape":[-1,16]}]}`},
		{"GET", "/v2/models/fake/versions/1", "", 200, `{"name":"fake","versions":["1"],…`},
		{"GET", "/v2/models/fake/versions/2", "", 404, `{"error":"Request for unknown model: 'fake' version 2 is not found"}`},
		{"GET", "/v2/models/fake/versions/x", "", 404, `{"error":"Not Found"}`},
		{"GET", "/v2/models/fake/ready", "", 200, ""},
		{"GET", "/v2/models/x/ready", "", 400, `{"error":"Model version not ready"}`},
		{"GET", "/v2/models/fake/versions/9/ready", "", 400, `{"error":"Model version not ready"}`},
		{"GET", "/v2/models/fake/versions/0/ready", "", 400, `{"error":"Model version not ready"}`},
		{"GET", "/v2/models/fake/versions/0", "", 404, `{"error":"Request for unknown model: 'fake' version 0 is not found"}`},
		{"GET", "/v2/models/fake/versions/0/stats", "", 400, `{"error":"requested model version is not available for model 'fake'"}`},
		{"GET", "/v2/models/fake/versions/9999999999999999999", "", 400, `{"error":"failed to get model version from specified version string '9999999999999999999' (details: stol), version should be an integral value > 0"}`},
		{"GET", "/v2/models/fake?x=/ready", "", 200, `{"name":"fake",…`},
		{"GET", "/v2/models/fake/versions/1/config", "", 200, `{"name":"fake","platform":"onnxruntime_onnx","backend":"onnxruntime","runtime":"",…`},
		{"GET", "/v2/models/x/config", "", 404, `{"error":"Request for unknown model: 'x' is not found"}`},
		{"GET", "/v2/models/x/stats", "", 400, `{"error":"requested model 'x' is not available"}`},
		{"GET", "/v2/models/fake/versions/7/stats", "", 400, `{"error":"requested model version is not available for model 'fake'"}`},
		{"GET", "/v2/models/stats", "", 200, `{"model_stats":[{"name":"fake","version":"1","last_inference":0,"inference_count":0,"execution_count":0,"inference_stats":{"success":{"count":0,"ns":0},…`},
		{"GET", "/v2/models/fake/infer", "", 405, `{"error":"Method Not Allowed"}`},
		{"POST", "/v2/models/fake/infer", good, 200, `{"model_name":"fake","model_version":"1","outputs":[{"name":"OUTPUT0",` + output + `,{"name":"OUTPUT1",` + output + `]}`},
		{"POST", "/v2/models/fake/versions/1/infer", strings.Replace(good, "{", `{"id":"a\"b","parameters":{"custom":1.5,"priority":2,"timeout":0,"sequence_id":1},"outputs":[{"name":"OUTPUT1"}],`, 1), 200,
			`{"id":"a\"b","model_name":"fake","model_version":"1","outputs":[{"name":"OUTPUT1",` + output + `]}`},
		{"POST", "/v2/models/fake/infer", strings.Replace(good, "{", `{"outputs":[{"name":"OUTPUT1","parameters":{"classification":2}}],`, 1), 200,
			`{"model_name":"fake","model_version":"1","outputs":[{"name":"OUTPUT1","datatype":"BYTES","shape":[1,2],"data":["14:14","13:13"]}]}`},
		{"POST", "/v2/models/fake/generate", `{"INPUT0":` + counted + `,"INPUT1":` + counted + `,"id":"7"}`, 200,
			`{"OUTPUT0":` + counted + `,"OUTPUT1":` + counted + `,"id":"7","model_name":"fake","model_version":"1"}`},
		{"POST", "/v2/models/fake/versions/1/generate_stream", `{"INPUT0":` + counted + `,"INPUT1":` + counted + `}`, 200,
			`data: {"OUTPUT0":` + counted + `,"OUTPUT1":` + counted + `,"model_name":"fake","model_version":"1"}` + "\n\n"},
		{"POST", "/v2/models/fake/generate_stream", `{}`, 400, `{"error":"[request id: <id_unknown>] expected 2 inputs…`},
		{"GET", "/v2/models/fake/generate", "", 405, `{"error":"Method Not Allowed"}`},
		{"POST", "/v2/models/x/infer", good, 404, `{"error":"Request for unknown model: 'x' is not found"}`},
		{"GET", "/v2/systemsharedmemory/status", "", 200, "[]"},
		{"GET", "/v2/cudasharedmemory/status", "", 200, "[]"},
		{"GET", "/v2/systemsharedmemory/region/r/status", "", 404, `{"error":"Unable to find system shared memory region: 'r'"}`},
		{"GET", "/v2/cudasharedmemory/region/r/status", "", 404, `{"error":"Unable to find cuda shared memory region: 'r'"}`},
		{"POST", "/v2/systemsharedmemory/unregister", "", 200, ""},
		{"POST", "/v2/cudasharedmemory/region/r/unregister", "", 200, ""},
		{"POST", "/v2/systemsharedmemory/region/r/register", "{}", 501, `{"error":"Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."}`},
		{"POST", "/v2/cudasharedmemory/region/r/register", "{}", 501, `{"error":"Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."}`},
		{"GET", "/v2/systemsharedmemory/unregister", "", 405, `{"error":"Method Not Allowed"}`},
		{"POST", "/v2/systemsharedmemory/register", "", 400, `{"error":"'region name' is necessary to register system shared memory region"}`},
		{"GET", "/v2/systemsharedmemory/region//status", "", 404, `{"error":"Not Found"}`},
		{"GET", "/v2/sharedmemory/status", "", 404, `{"error":"Not Found"}`},
		{"POST", "/v2/repository/index", "", 200, `[{"name":"fake","version":"1","state":"READY"}]`},
		{"POST", "/v2/repository/index", `{"ready":true}`, 200, `[{"name":"fake","version":"1","state":"READY"}]`},
		{"POST", "/v2/repository/index", `{"ready":1}`, 500, `{"error":"attempt to access JSON non-boolean as boolean"}`},
		{"POST", "/v2/repository/index", `{"ready":null}`, 500, `{"error":"attempt to access JSON non-boolean as boolean"}`},
		{"POST", "/v2/repository/index", `{"ready":[[true]]}`, 500, `{"error":"attempt to access JSON non-boolean as boolean"}`},
		{"POST", "/v2/repository/index", `{"ready":` + strings.Repeat("[", 250_000) + "true" + strings.Repeat("]", 250_000) + "}", 400, `{"error":"JSON nesting depth exceeds maximum allowed limit (100)"}`},
		{"POST", "/v2/repository/index", `[]`, 200, `[{"name":"fake","version":"1","state":"READY"}]`},
		{"POST", "/v2/repository/index", ` `, 500, `{"error":"failed to parse the request JSON buffer: The document is empty. at 1"}`},
		{"POST", "/v2/repository/some/index", "", 200, `[{"name":"fake","version":"1","state":"READY"}]`},
		{"POST", "/v2/repository/models/nosuch/load", "", 500, `{"error":"failed to load 'nosuch', failed to poll from model repository"}`},
		{"POST", "/v2/repository/models/nosuch/unload", "", 200, ""},
		{"POST", "/v2/repository/repo/models/fake/load", "", 501, `{"error":"'repository_name' specification is not supported"}`},
		{"POST", "/v2/repository/models/nosuch/unload", "{", 200, ""},
		{"POST", "/v2/repository/models/fake/load", `{"parameters":[]}`, 500, `{"error":"attempt to get members for non-object"}`},
		{"POST", "/v2/repository/models/fake/load", `{"parameters":{"config":1}}`, 500, `{"error":"attempt to access JSON non-string as string"}`},
		{"POST", "/v2/repository/models/fake/load", `{"parameters":{"what":"1"}}`, 500, `{"error":"unexpected error on creating Triton parameter"}`},
		{"POST", "/v2/repository/models/fake/load", `{"parameters":{"file:1/model.onnx":"%"}}`, 400, `{"error":"cannot decode parameter …`},
		{"POST", "/v2/repository/models/fake/load", `{"parameters":{"config":"{\"max_batch_size\":2}"}}`, 200, ""},
	} {
		got := call(t, e, tc.method, tc.path, tc.body)
		prefix, cut := strings.CutSuffix(tc.want, "…")
		if got.status != tc.status || got.body != prefix && !(cut && strings.HasPrefix(got.body, prefix)) {
			t.Errorf("%s %s %s:\n got %d %s\nwant %d %s", tc.method, tc.path, tc.body, got.status, got.body, tc.status, tc.want)
		}
	}
}

func TestBadInferRequests(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	a, b := one("INPUT0", counted), one("INPUT1", counted)
	raw := func(extra string) string {
		return `{"name":"INPUT1","datatype":"INT32","shape":[1,16]` + extra + `}`
	}
	for _, tc := range []struct {
		name, body string
		status     int
		want       string // part of the text
	}{
		{"empty", "", 400, "Raw request must only have 1 input"},
		{"not JSON", "hello", 500, "failed to parse the request JSON buffer: "},
		{"cut off", `{"inputs":[` + a, 500, "failed to parse the request JSON buffer: "},
		{"more behind", `{"inputs":[` + a + `,` + b + `]} x`, 500, "must not be followed"},
		{"null character behind", `{"inputs":[` + a + `,` + b + "]}\x00x", 200, ""},
		{"no inputs", `{}`, 500, "Unable to parse 'inputs'"},
		{"inputs no array", `{"inputs":{}}`, 500, "Unable to parse 'inputs': attempt to access JSON non-array as array"},
		{"no name", `{"inputs":[{"datatype":"INT32","shape":[1],"data":[1]}]}`, 500, "'name'"},
		{"no shape", `{"inputs":[{"name":"INPUT0","datatype":"INT32","data":[1]}]}`, 500, "'shape'"},
		{"negative shape", `{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[-1,16],"data":[1]}]}`, 500, "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer"},
		{"no data", `{"inputs":[` + a + `,` + raw("") + `]}`, 400, "But no field is set"},
		{"data and size", `{"inputs":[` + a + `,` + raw(`,"data":[1],"parameters":{"binary_data_size":4}`) + `]}`, 400, "But set 'data' 'binary_data_size'"},
		{"binary missing", `{"inputs":[` + a + `,` + raw(`,"parameters":{"binary_data_size":64}`) + `]}`, 400, "unexpected size for input 'INPUT1', expecting 64 additional bytes"},
		{"size huge", `{"inputs":[` + a + `,` + raw(`,"parameters":{"binary_data_size":18446744073709551615}`) + `]}`, 400, "unexpected size for input 'INPUT1', expecting 18446744073709551615 additional bytes for model 'fake'"},
		{"shared memory", `{"inputs":[` + a + `,` + raw(`,"parameters":{"shared_memory_region":"x"}`) + `]}`, 404, "Unable to find shared memory region: 'x'"},
		{"shared memory and data", `{"inputs":[` + a + `,` + raw(`,"data":[1],"parameters":{"shared_memory_region":"x"}`) + `]}`, 400, "But set 'data' 'shared_memory_region'"},
		{"shared memory for an output", `{"inputs":[` + a + `,` + b + `],"outputs":[{"name":"OUTPUT0","parameters":{"shared_memory_region":"x"}}]}`, 404, "Unable to find shared memory region: 'x'"},
		{"classes no number", `{"inputs":[` + a + `,` + b + `],"outputs":[{"name":"OUTPUT0","parameters":{"classification":"2"}}]}`, 500, "Unable to set 'classification': attempt to access JSON non-unsigned-integer as unsigned-integer"},
		{"input no object", `{"inputs":[5]}`, 400, "But no field is set"},
		{"output no object", `{"inputs":[` + a + `,` + b + `],"outputs":[5]}`, 500, "Unable to parse 'name': attempt to access non-existing object member 'name'"},
		{"outputs no array", `{"inputs":[` + a + `,` + b + `],"outputs":{}}`, 500, "Unable to parse 'outputs': attempt to access JSON non-array as array"},
		{"nested shape", `{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[[1],[16]],"data":` + counted + `}]}`, 500, "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer"},
		{"object as element", `{"inputs":[` + a + `,` + one("INPUT1", strings.Replace(counted, "14", `{"a":1}`, 1)) + `]}`, 500, "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer"},
		{"data no array", `{"inputs":[` + a + `,` + one("INPUT1", "5") + `]}`, 500, "Unable to parse 'data': attempt to access JSON non-array as array"},
		{"syntax before sense", `{"inputs":5,"id":"` + "\x01" + `"}`, 500, "failed to parse the request JSON buffer: Invalid escape character in string. at 18"},
		{"two inputs of a name", `{"inputs":[` + a + `,` + a + `]}`, 400, "input 'INPUT0' already exists in request"},
		{"two outputs of a name", `{"inputs":[` + a + `,` + b + `],"outputs":[{"name":"OUTPUT0"},{"name":"OUTPUT0","parameters":{"binary_data":true}}]}`, 400, "output 'OUTPUT0' already exists in request"},
		{"too few elements", `{"inputs":[` + a + `,` + one("INPUT1", "[1,2]") + `]}`, 500, "Shape does not match"},
		{"too many elements", `{"inputs":[` + a + `,` + one("INPUT1", "["+counted+",1]") + `]}`, 500, "Shape does not match"},
		{"huge shape", `{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[4294967296,4294967296],"data":[1]}]}`, 400, "too many elements"},
		{"large shape", `{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[2147483647],"data":[1]}]}`, 500, "Shape does not match true shape of 'data' field"},
		{"integer too large", `{"inputs":[` + a + `,` + one("INPUT1", strings.Replace(counted, "14", "2147483648", 1)) + `]}`, 400, "Unable to parse 'data': 2147483648 does not fit INT32"},
		{"integer of more than 64 bits", `{"inputs":[` + a + `,` + one("INPUT1", strings.Replace(counted, "14", "9223372036854775808", 1)) + `]}`, 500, "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer"},
		{"leading zero", `{"inputs":[` + a + `,` + one("INPUT1", strings.Replace(counted, "14", "014", 1)) + `]}`, 500, "Missing a comma or ']' after an array element."},
		{"float for integer", `{"inputs":[` + a + `,` + one("INPUT1", strings.Replace(counted, "14", "1.5", 1)) + `]}`, 500, "Unable to parse 'data'"},
		{"half floats as JSON", `{"inputs":[` + strings.Replace(a, "INT32", "FP16", 1) + `]}`, 400, "FP16 data via JSON is not supported"},
		{"unknown type", `{"inputs":[` + a + `,` + strings.Replace(b, "INT32", "INT31", 1) + `]}`, 400, "invalid datatype for input INPUT1"},
		{"reserved parameter", `{"parameters":{"triton_x":1},"inputs":[` + a + `,` + b + `]}`, 400, "reserved"},
		{"bad priority", `{"parameters":{"priority":-1},"inputs":[` + a + `,` + b + `]}`, 500, "Unable to parse 'priority': attempt to access JSON non-unsigned-integer as unsigned-integer"},
		{"object as parameter", `{"parameters":{"x":{}},"inputs":[` + a + `,` + b + `]}`, 400, "parameter 'x' has invalid type"},
		{"id no string", `{"id":5,"inputs":[` + a + `,` + b + `]}`, 500, "Unable to parse 'id': attempt to access JSON non-string as string"},
		{"parameters no object", `{"parameters":[],"inputs":[` + a + `,` + b + `]}`, 500, "failed to get request params.: attempt to get members for non-object"},
		{"string for integer", `{"inputs":[` + a + `,` + one("INPUT1", strings.Replace(counted, "14", `"14"`, 1)) + `]}`, 500, "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer"},
		{"too deep", `{"inputs":[` + a + `,` + one("INPUT1", strings.Repeat("[", 101)+strings.Repeat("]", 101)) + `]}`, 400, "JSON nesting depth exceeds maximum allowed limit (100)"},
		{"bad escape", `{"id":"\q","inputs":[` + a + `,` + b + `]}`, 500, "Invalid escape"},
		{"half a surrogate", `{"id":"\ud800","inputs":[` + a + `,` + b + `]}`, 500, "The surrogate pair in string is invalid. at 7"},
		{"bad hex", `{"id":"\u12","inputs":[` + a + `,` + b + `]}`, 500, `Incorrect hex digit after \u escape in string. at 7`},
		{"no sequence id", `{"parameters":{"sequence_id":1.5},"inputs":[` + a + `,` + b + `]}`, 500, "Unable to parse 'sequence_id': attempt to access JSON non-string as string"},
		{"sequence start no boolean", `{"parameters":{"sequence_start":1},"inputs":[` + a + `,` + b + `]}`, 500, "Unable to parse 'sequence_start': attempt to access JSON non-boolean as boolean"},
	} {
		got := call(t, e, "POST", "/v2/models/fake/infer", tc.body)
		var body struct{ Error string }
		if err := json.Unmarshal([]byte(got.body), &body); err != nil || got.status != tc.status || !strings.Contains(body.Error, tc.want) {
			t.Errorf("%s:\n got %d %s\nwant %d …%s…", tc.name, got.status, got.body, tc.status, tc.want)
		}
	}
	for header, want := range map[string]string{"-1": "should be in range (0, 2), got: -1", "x": "got: x", "999": "got: 999", "0": "Raw request must only have 1 input"} {
		if got := call(t, e, "POST", "/v2/models/fake/infer", "{}", "Inference-Header-Content-Length", header); got.status != 400 || !strings.Contains(got.body, want) {
			t.Errorf("header length %q: got %d %s, want 400 …%s…", header, got.status, got.body, want)
		}
	}
	if got := call(t, e, "POST", "/v2/models/fake/infer", "{}", "Content-Encoding", "br"); got.status != 501 {
		t.Errorf("compressed body: got %d %s, want 501", got.status, got.body)
	}
	tail := `{"inputs":[` + a + `,` + raw(`,"parameters":{"binary_data_size":64}`) + `]}`
	if got := call(t, e, "POST", "/v2/models/fake/infer", tail+strings.Repeat("x", 65), "Inference-Header-Content-Length", strconv.Itoa(len(tail))); got.status != 400 || !strings.Contains(got.body, "unexpected additional input data for model") {
		t.Errorf("bytes left over: got %d %s", got.status, got.body)
	}
}

// typed serves a model that copies one input of the given type.
func typed(t testing.TB, dataType configpb.DataType, dims ...int64) *enginetest.Engine {
	return enginetest.Start(t, enginetest.Options{Backend: &enginetest.Backend{IO: modelconfig.ModelIO{
		Inputs:  []modelconfig.Tensor{{Name: "X", DataType: dataType, Dims: dims}},
		Outputs: []modelconfig.Tensor{{Name: "Y", DataType: dataType, Dims: dims}},
	}}})
}

// With JSON in and JSON out, elements of every type come back unchanged, even those without a JSON
// number.
func TestJSONTensors(t *testing.T) {
	t.Parallel()
	for dataType, data := range map[string]string{
		"BOOL": "[true,false]", "INT8": "[-128,127]", "UINT8": "[0,255]", "INT16": "[-32768,32767]", "UINT16": "[0,65535]",
		"INT32": "[-2147483648,2147483647]", "UINT32": "[0,4294967295]",
		"INT64": "[-9223372036854775808,9223372036854775807]", "UINT64": "[0,18446744073709551615]",
		"FP32": "[0.5,NaN]", "FP64": "[-Infinity,1e+300]", "BYTES": `["","a\"\\\n\u0001zü"]`,
	} {
		t.Run(dataType, func(t *testing.T) {
			t.Parallel()
			inModel, err := modelconfig.DataTypeOf(dataType)
			if err != nil {
				t.Fatal(err)
			}
			e := typed(t, inModel, -1, 2)
			got := call(t, e, "POST", "/v2/models/fake/infer", `{"inputs":[{"name":"X","datatype":"`+dataType+`","shape":[1,2],"data":`+data+`}]}`)
			want := `{"model_name":"fake","model_version":"1","outputs":[{"name":"Y","datatype":"` + dataType + `","shape":[1,2],"data":` + data + `}]}`
			if got.status != 200 || got.body != want {
				t.Errorf("got %d %s\nwant %s", got.status, got.body, want)
			}
		})
	}
}

func TestHalfFloatsNeedTheBinaryForm(t *testing.T) {
	t.Parallel()
	for name, dataType := range map[string]configpb.DataType{"FP16": configpb.DataType_TYPE_FP16, "BF16": configpb.DataType_TYPE_BF16} {
		t.Run(name, func(t *testing.T) { t.Parallel(); checkHalfFloats(t, name, typed(t, dataType, -1, 2)) })
	}
}

func checkHalfFloats(t *testing.T, name string, e *enginetest.Engine) {
	head := `{"inputs":[{"name":"X","datatype":"` + name + `","shape":[1,2],"parameters":{"binary_data_size":4}}],"outputs":[{"name":"Y","parameters":{"binary_data":true}}]}`
	send := func(head string) answer {
		return call(t, e, "POST", "/v2/models/fake/infer", head+"\x00\x3c\x00\xbc", "Inference-Header-Content-Length", strconv.Itoa(len(head)))
	}
	got := send(head)
	n, _ := strconv.Atoi(got.header.Get("Inference-Header-Content-Length"))
	if got.status != 200 || n == 0 || got.body[n:] != "\x00\x3c\x00\xbc" || got.header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("got %d, %d bytes of JSON, %q", got.status, n, got.body)
	}
	if got := send(strings.Replace(head, "true", "false", 1)); got.status != 400 || !strings.Contains(got.body, "sending "+name+" data via JSON is not supported") {
		t.Errorf("as JSON: got %d %s", got.status, got.body)
	}
	json := `{"inputs":[{"name":"X","datatype":"` + name + `","shape":[1,2],"data":[1,2]}]}`
	if got := call(t, e, "POST", "/v2/models/fake/infer", json); got.status != 400 || !strings.Contains(got.body, "receiving "+name+" data via JSON is not supported. Please use the binary data format for input X") {
		t.Errorf("from JSON: got %d %s", got.status, got.body)
	}
}

// Tensors without elements are valid in both forms. Their JSON data is not read.
func TestEmptyTensors(t *testing.T) {
	t.Parallel()
	for _, dataType := range []configpb.DataType{configpb.DataType_TYPE_FP32, configpb.DataType_TYPE_STRING, configpb.DataType_TYPE_BOOL} {
		e, name := typed(t, dataType, -1, -1), modelconfig.WireName(dataType)
		want := `{"model_name":"fake","model_version":"1","outputs":[{"name":"Y","datatype":"` + name + `","shape":[1,0],"data":[]}]}`
		for _, source := range []string{`"data":[]`, `"data":[1]`, `"data":[[]]`, `"parameters":{"binary_data_size":0}`} {
			got := call(t, e, "POST", "/v2/models/fake/infer", `{"inputs":[{"name":"X","datatype":"`+name+`","shape":[1,0],`+source+`}]}`)
			if got.status != 200 || got.body != want {
				t.Errorf("%s: got %d %s, want %s", source, got.status, got.body, want)
			}
		}
	}
}

// Numbers are written as doubles, as in Triton, and read with Triton's rounding.
func TestFloats(t *testing.T) {
	t.Parallel()
	e := typed(t, configpb.DataType_TYPE_FP32, -1, -1)
	for in, want := range map[string]string{
		"0.1": "0.10000000149011612", "1": "1.0", "-0": "-0.0", "1e10": "1e+10", "3.5e38": "Infinity", "-3.5e38": "-Infinity", "1e-50": "0.0",
		"NaN": "NaN", "-NaN": "NaN", "Inf": "Infinity", "-Infinity": "-Infinity", "16777217": "1.6777216e+07",
	} {
		got := call(t, e, "POST", "/v2/models/fake/infer", `{"inputs":[{"name":"X","datatype":"FP32","shape":[1,1],"data":[`+in+`]}]}`)
		if !strings.Contains(got.body, `"data":[`+want+`]`) {
			t.Errorf("%s: got %d %s, want %s", in, got.status, got.body, want)
		}
	}
	for _, in := range []string{"1e999", strings.Repeat("9", 250) + "e99", "nan", "inf", "Infinit", "1e", "1.", ".5", "+1", "01", "0x1", "1_0", `"1"`, "true", "null", "-"} {
		got := call(t, e, "POST", "/v2/models/fake/infer", `{"inputs":[{"name":"X","datatype":"FP32","shape":[1,1],"data":[`+in+`]}]}`)
		if got.status != 500 {
			t.Errorf("%s: got %d %s, want 500", in, got.status, got.body)
		}
	}
}

// With a JSON length of 0 the body is only the data of the single input.
func TestRawBody(t *testing.T) {
	t.Parallel()
	e := typed(t, configpb.DataType_TYPE_INT32, -1, -1)
	data := "\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00"
	got := call(t, e, "POST", "/v2/models/fake/infer", data, "Inference-Header-Content-Length", "0")
	n, _ := strconv.Atoi(got.header.Get("Inference-Header-Content-Length"))
	if got.status != 200 || !strings.Contains(got.body[:n], `"shape":[1,3]`) || got.body[n:] != data {
		t.Errorf("got %d %q", got.status, got.body)
	}
	s := typed(t, configpb.DataType_TYPE_STRING, -1, 1)
	if got := call(t, s, "POST", "/v2/models/fake/infer", "hello", "Inference-Header-Content-Length", "0"); !strings.HasSuffix(got.body, "\x05\x00\x00\x00hello") {
		t.Errorf("string: got %d %q", got.status, got.body)
	}
}

func TestFileOverride(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	load := map[string]any{"parameters": map[string]string{
		"config": `{"backend":"onnxruntime","max_batch_size":7}`, "file:5/model.onnx": base64.StdEncoding.EncodeToString([]byte("x")),
	}}
	body, err := json.Marshal(load)
	if err != nil {
		t.Fatal(err)
	}
	if got := call(t, e, "POST", "/v2/repository/models/fake/load", string(body)); got.status != 200 {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	if got := call(t, e, "GET", "/v2/models/fake", ""); !strings.Contains(got.body, `"versions":["5"]`) {
		t.Errorf("got %s, want version 5", got.body)
	}
}

// Requests on one connection are answered one after the other. Garbage does not affect the next
// connection.
func TestGarbage(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	for _, garbage := range []string{"\x16\x03\x01\x00\xff", "GET /v2 HTTP/9\r\n\r\n", "POST /v2/models/fake/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n", "X"} {
		conn, err := net.Dial("tcp", e.Addresses.HTTP)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(garbage)); err != nil {
			t.Fatal(err)
		}
		if c, ok := conn.(*net.TCPConn); ok {
			_ = c.CloseWrite() // the server may have closed it already
		}
		reply, _ := io.ReadAll(conn) // a reset is as good as an answer
		if bytes.Contains(reply, []byte("200 OK")) {
			t.Errorf("%q was answered with %q", garbage, reply)
		}
		_ = conn.Close()
	}
	if got := call(t, e, "GET", "/v2/health/ready", ""); got.status != 200 {
		t.Errorf("afterwards: got %d", got.status)
	}
}
