package rest_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"tuner/engine/enginetest"
)

// tensorBytes is the size of the fake model's tensors.
const tensorBytes = 64

// numbered returns the tensor of sixteen small integers from n on.
func numbered(n byte) []byte {
	data := make([]byte, tensorBytes)
	for i := range 16 {
		data[4*i] = n + byte(i)
	}
	return data
}

// shared starts an engine with a region for the inputs of the fake model, at 0 and 64, and its outputs
// at 128 and 192.
func shared(t *testing.T, o enginetest.Options) (*enginetest.Engine, *os.File) {
	t.Helper()
	o.SharedMemory = true
	e := enginetest.Start(t, o)
	key, file := enginetest.SharedFile(t, append(append(numbered(1), numbered(100)...), make([]byte, 2*tensorBytes)...))
	expect(t, e, "POST", "/v2/systemsharedmemory/region/r/register", fmt.Sprintf(`{"key":%q,"byte_size":256}`, key), 200, "")
	return e, file
}

// expect makes a call. want is the beginning of the answer.
func expect(t *testing.T, e *enginetest.Engine, method, path, body string, status int, want string) answer {
	t.Helper()
	got := call(t, e, method, path, body)
	if got.status != status || !strings.HasPrefix(got.body, want) {
		t.Errorf("%s %s %s: got %d %s, want %d %s", method, path, body, got.status, got.body, status, want)
	}
	return got
}

// inRegion is an input or output of the fake model in region r. more are further parameters.
func inRegion(name string, offset, size int, more string) string {
	shape := ""
	if strings.HasPrefix(name, "INPUT") {
		shape = `"shape":[1,16],"datatype":"INT32",`
	}
	return fmt.Sprintf(`{"name":%q,%s"parameters":{"shared_memory_region":"r","shared_memory_offset":%d,"shared_memory_byte_size":%d%s}}`, name, shape, offset, size, more)
}

func holds(t *testing.T, file *os.File, at int64, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := file.ReadAt(got, at); err != nil || !bytes.Equal(got, want) {
		t.Errorf("at %d the file has %v, %v, want %v", at, got, err, want)
	}
}

const (
	emptyHead = `{"model_name":"fake","model_version":"1","outputs":[{"name":"OUTPUT0","datatype":"INT32","shape":[1,16]}`
	inferFake = "/v2/models/fake/infer"
)

func TestSharedMemory(t *testing.T) {
	t.Parallel()
	e, file := shared(t, enginetest.Options{})
	inputs := `{"inputs":[` + inRegion("INPUT0", 0, 64, "") + `,` + inRegion("INPUT1", 64, 64, "") + `]`
	// in and out: as the fake model repeats its inputs, so does the region
	both := `,"outputs":[` + inRegion("OUTPUT1", 128, 64, "") + `,` + inRegion("OUTPUT0", 192, 64, `,"binary_data":false`) + `]}`
	expect(t, e, "POST", inferFake, inputs+both, 200, emptyHead+`,{"name":"OUTPUT1","datatype":"INT32","shape":[1,16]}]}`)
	holds(t, file, 128, append(numbered(100), numbered(1)...))
	// in alone
	values := `"data":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}`
	expect(t, e, "POST", inferFake, inputs+`,"outputs":[{"name":"OUTPUT0"}]}`, 200, emptyHead[:len(emptyHead)-1]+","+values+"]}")
	// out alone, beside JSON and binary data
	json := `{"inputs":[` + one("INPUT0", counted) + `,` + one("INPUT1", counted) + `],"outputs":[` + inRegion("OUTPUT0", 0, 128, "") + `,{"name":"OUTPUT1"`
	expect(t, e, "POST", inferFake, json+`}]}`, 200, emptyHead+`,{"name":"OUTPUT1","datatype":"INT32","shape":[1,16],"data":[0,1,2`)
	got := expect(t, e, "POST", inferFake, json+`,"parameters":{"binary_data":true}}]}`, 200, emptyHead+`,{"name":"OUTPUT1","datatype":"INT32","shape":[1,16],"parameters":{"binary_data_size":64}}]}`)
	if length := got.header.Get("Inference-Header-Content-Length"); len(got.body) < tensorBytes || length != fmt.Sprint(len(got.body)-tensorBytes) {
		t.Errorf("the JSON of %d bytes has the length %s", len(got.body), length)
	}
	first := numbered(0)
	copy(first[60:], []byte{0xf1, 0xff, 0xff, 0xff}) // counted ends with -15
	holds(t, file, 0, first)
	// a binary input behind one in a region
	head := `{"inputs":[` + inRegion("INPUT0", 128, 64, "") + `,{"name":"INPUT1","shape":[1,16],"datatype":"INT32","parameters":{"binary_data_size":64}}],"outputs":[{"name":"OUTPUT1"}]}`
	if got := call(t, e, "POST", inferFake, head+string(numbered(1)), "Inference-Header-Content-Length", fmt.Sprint(len(head))); !strings.Contains(got.body, values) {
		t.Errorf("a binary input beside a region: %d %s", got.status, got.body)
	}
}

func TestSharedMemoryCalls(t *testing.T) {
	t.Parallel()
	e, file := shared(t, enginetest.Options{})
	region := fmt.Sprintf(`{"name":"r","key":"/%s","offset":0,"byte_size":256}`, strings.TrimPrefix(file.Name(), "/dev/shm/"))
	const system, register = "/v2/systemsharedmemory", "/v2/systemsharedmemory/region/x/register"
	for _, tc := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", system + "/status", "", 200, "[" + region + "]"},
		{"GET", system + "/region/r/status", "", 200, "[" + region + "]"},
		{"GET", system + "/region/x/status", "", 404, `{"error":"Unable to find system shared memory region: 'x'"}`},
		{"GET", "/v2/cudasharedmemory/status", "", 200, "[]"},
		{"GET", "/v2/cudasharedmemory/region/r/status", "", 404, `{"error":"The region named 'r' is registered as system shared memory, not CUDA shared memory"}`},
		{"POST", "/v2/cudasharedmemory/region/r/register", "", 400, `{"error":"failed to register CUDA shared memory region: 'r', GPUs not supported"}`},
		{"POST", "/v2/cudasharedmemory/register", "", 400, `{"error":"'region name' is necessary to register cuda shared memory region"}`},
		{"POST", "/v2/cudasharedmemory/region/r/unregister", "", 200, ""},
		{"POST", "/v2/cudasharedmemory/unregister", "", 200, ""},
		{"POST", register, "", 500, `{"error":"failed to parse the request JSON buffer: The document is empty. at 0"}`},
		{"POST", register, "[]", 400, `{"error":"Shared memory register request has no 'key' field"}`},
		{"POST", register, `{"byte_size":1}`, 400, `{"error":"Shared memory register request has no 'key' field"}`},
		{"POST", register, `{"key":"k","offset":1}`, 400, `{"error":"Shared memory register request has no 'byte_size' field"}`},
		{"POST", register, `{"key":1}`, 500, `{"error":"attempt to access JSON non-string as string"}`},
		{"POST", register, `{"key":"k","offset":-1}`, 500, `{"error":"attempt to access JSON non-unsigned-integer as unsigned-integer"}`},
		{"POST", register, `{"key":"k","byte_size":18446744073709551616}`, 500, `{"error":"attempt to access JSON non-unsigned-integer as unsigned-integer"}`},
		{"POST", register, `{"key":"tuner-test-none","byte_size":1}`, 500, `{"error":"Unable to open shared memory region: 'tuner-test-none'"}`},
		{"POST", system + "/region/r/unregister", "", 200, ""},
		{"POST", system + "/region/r/unregister", "", 200, ""},
		{"GET", system + "/status", "", 200, "[]"},
		{"POST", system + "/unregister", "", 200, ""},
	} {
		got := expect(t, e, tc.method, tc.path, tc.body, tc.status, tc.want)
		if kind := got.header.Get("Content-Type"); kind != "application/json" {
			t.Errorf("%s %s: content of type %q", tc.method, tc.path, kind)
		}
	}
}

func TestBadSharedMemory(t *testing.T) {
	t.Parallel()
	e, file := shared(t, enginetest.Options{})
	input := func(in string) string { return `{"inputs":[` + in + `,` + inRegion("INPUT1", 64, 64, "") + `]}` }
	output := func(out string) string {
		return `{"inputs":[` + inRegion("INPUT0", 0, 64, "") + `,` + inRegion("INPUT1", 64, 64, "") + `],"outputs":[` + out + `]}`
	}
	for _, tc := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"input behind the end", input(inRegion("INPUT0", 256, 64, "")), 400, "Invalid offset for shared memory region: 'r'"},
		{"input over the end", input(inRegion("INPUT0", 193, 64, "")), 400, "Invalid offset + byte size for shared memory region: 'r'"},
		{"input without a size", input(strings.Replace(inRegion("INPUT0", 0, 64, ""), "byte_size", "x", 1)), 400, "Invalid offset + byte size for shared memory region: 'r'"},
		{"input too small", input(inRegion("INPUT0", 0, 63, "")), 400, "[request id: <id_unknown>] input byte size mismatch for input 'INPUT0' for model 'fake'. Expected 64, got 63"},
		{"input without a text", input(strings.Replace(inRegion("INPUT0", 0, 64, ""), `"r"`, "1", 1)), 500, "Unable to parse 'shared_memory_region': attempt to access JSON non-string as string"},
		{"input with a text as size", input(inRegion("INPUT0", 0, 64, `,"shared_memory_byte_size":"1"`)), 200, ""}, // the first counts
		{"input with a negative offset", input(strings.Replace(inRegion("INPUT0", 0, 64, ""), `offset":0`, `offset":-1`, 1)), 500, "Unable to parse 'shared_memory_offset': attempt to access JSON non-unsigned-integer as unsigned-integer"},
		{"size without a region", input(strings.Replace(one("INPUT0", counted), `"shape"`, `"parameters":{"shared_memory_byte_size":"x"},"shape"`, 1)), 500, "Unable to parse 'shared_memory_byte_size': attempt to access JSON non-unsigned-integer as unsigned-integer"},
		{"output too small", output(inRegion("OUTPUT0", 0, 63, "")), 500, "shared memory size specified with the request for output 'OUTPUT0' (63 bytes) should be at least 64 bytes to hold the results"},
		{"output of no bytes", output(inRegion("OUTPUT0", 1, 0, "")), 500, "shared memory size specified with the request for output 'OUTPUT0' (0 bytes) should be at least 64 bytes to hold the results"},
		{"output and binary", output(inRegion("OUTPUT0", 0, 64, `,"binary_data":true`)), 400, "Output can't set both 'shared_memory_region' and 'binary_data'"},
		{"output and something else", output(inRegion("OUTPUT0", 0, 64, `,"binary_data":1`)), 500, "Unable to set 'binary_data': attempt to access JSON non-boolean as boolean"},
		{"output and classes", output(inRegion("OUTPUT0", 0, 64, `,"classification":0`)), 400, "Output can't set both 'shared_memory_region' and 'classification'"},
		{"output behind the end", output(inRegion("OUTPUT0", 256, 1, "")), 400, "Invalid offset for shared memory region: 'r'"},
		{"output with a sum of more than 2^64", output(strings.Replace(inRegion("OUTPUT0", 32, 64, ""), ":64", ":18446744073709551600", 1)), 400, "Integer overflow detected: byte_size (18446744073709551600) + offset (32) exceeds maximum value (18446744073709551615) for region 'r'"},
		{"unknown output", output(inRegion("OUTPUT7", 0, 64, "")), 400, "unexpected inference output 'OUTPUT7' for model 'fake'"},
		{"unknown model and region", `{"inputs":[` + strings.Replace(inRegion("INPUT0", 0, 64, ""), `"r"`, `"none"`, 1) + `]}`, 404, "Unable to find shared memory region: 'none'"},
	} {
		got := call(t, e, "POST", inferFake, tc.body)
		if got.status != tc.status || !strings.Contains(got.body, tc.want) {
			t.Errorf("%s:\n got %d %s\nwant %d …%s…", tc.name, got.status, got.body, tc.status, tc.want)
		}
	}
	// two of them were executed and failed, as in Triton
	if stats := call(t, e, "GET", "/v2/models/fake/stats", ""); !strings.Contains(stats.body, `"fail":{"count":2,`) {
		t.Errorf("statistics: %s, want 2 failures", stats.body)
	}
	if err := file.Truncate(0); err != nil {
		t.Fatal(err)
	}
	expect(t, e, "POST", inferFake, input(inRegion("INPUT0", 0, 64, "")), 400, `{"error":"cannot read shared memory region 'r': its file is shorter than when it was registered"}`)
	expect(t, e, "POST", inferFake, `{"inputs":[`+one("INPUT0", counted)+`,`+one("INPUT1", counted)+`],"outputs":[`+inRegion("OUTPUT0", 0, 64, "")+`]}`, 400,
		`{"error":"cannot write to shared memory region 'r': its file is shorter than when it was registered, or /dev/shm is full"}`)
	expect(t, e, "POST", "/v2/systemsharedmemory/region/r/unregister", "", 200, "") // no failed request uses it any more
}

// A region stays as long as a request uses it. The request finds it even if its file has gone.
func TestSharedMemoryInUse(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	e, file := shared(t, enginetest.Options{Backend: &enginetest.Backend{ServiceTime: func(int, int) time.Duration {
		begun <- struct{}{}
		<-end
		return 0
	}}})
	answered := make(chan answer)
	go func() {
		answered <- call(t, e, http.MethodPost, inferFake, `{"inputs":[`+inRegion("INPUT0", 0, 64, "")+`,`+one("INPUT1", counted)+`],"outputs":[`+inRegion("OUTPUT0", 128, 64, "")+`]}`)
	}()
	<-begun
	expect(t, e, "POST", "/v2/systemsharedmemory/region/r/unregister", "", 500, `{"error":"Cannot unregister shared memory region 'r', it is currently in use."}`)
	expect(t, e, "POST", "/v2/systemsharedmemory/unregister", "", 500, `{"error":"Failed to unregister the following system shared memory regions: r ,"}`)
	if err := os.Remove(file.Name()); err != nil {
		t.Error(err)
	}
	close(end)
	if got := <-answered; got.status != 200 || got.body != emptyHead+"]}" {
		t.Errorf("got %d %s", got.status, got.body)
	}
	holds(t, file, 128, numbered(1))
	expect(t, e, "POST", "/v2/systemsharedmemory/unregister", "", 200, "")
}
