package enginetest

import (
	"fmt"
	"strings"

	"tuner/engine/api"
)

// FakeConfig returns the config.pbtxt of the model "fake", with the tensors of Simple and batches
// up to maxBatch.
func FakeConfig(maxBatch int) string {
	tensor := `{ name: "%s%d" data_type: TYPE_INT32 dims: [16] }`
	return fmt.Sprintf(`name: "fake" backend: "onnxruntime" max_batch_size: %d dynamic_batching {} instance_group { count: 1 kind: KIND_CPU }
		input [`+tensor+","+tensor+"] output ["+tensor+","+tensor+"]", maxBatch, "INPUT", 0, "INPUT", 1, "OUTPUT", 0, "OUTPUT", 1)
}

// FakeConfigJSON returns FakeConfig in the form for load requests.
func FakeConfigJSON(maxBatch int) string {
	tensor := `{"name":"%s%d","data_type":"TYPE_INT32","dims":[16]}`
	return fmt.Sprintf(`{"name":"fake","backend":"onnxruntime","max_batch_size":%d,"dynamic_batching":{},"instance_group":[{"count":1,"kind":"KIND_CPU"}],
		"input":[`+tensor+","+tensor+`],"output":[`+tensor+","+tensor+"]}", maxBatch, "INPUT", 0, "INPUT", 1, "OUTPUT", 0, "OUTPUT", 1)
}

// FakeRequests returns four different requests of one row to the model "fake".
func FakeRequests() []api.InferRequest {
	requests := make([]api.InferRequest, 4)
	for i := range requests {
		data := []byte(strings.Repeat(string([]byte{byte(i), 0, 0, 0}), 16))
		requests[i] = api.InferRequest{Model: "fake"}
		for _, name := range []string{"INPUT0", "INPUT1"} {
			requests[i].Inputs = append(requests[i].Inputs, api.Tensor{Name: name, Datatype: "INT32", Shape: []int64{1, 16}, Data: data})
		}
	}
	return requests
}
