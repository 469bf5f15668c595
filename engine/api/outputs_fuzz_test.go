package api

import (
	"testing"

	"tuner/internal/alloctest"
)

// FuzzOutputs reads the answer of a foreign server to an inference. Either it is refused, or its
// tensors are parts of it.
func FuzzOutputs(f *testing.F) {
	text := `{"outputs": [{"name": "y", "datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": 4}}]}`
	f.Add(uint16(len(text)), []byte(text+"abcd"))
	f.Add(uint16(len(text)), []byte(text+"ab"))
	f.Add(uint16(2), []byte(`{}`))
	f.Fuzz(func(t *testing.T, header uint16, body []byte) {
		defer alloctest.Bound(t, len(body))()
		r := &InferResponse{body: body, header: min(int(header), len(body)), decode: decodeHTTP}
		outputs, err := r.Outputs()
		if err != nil {
			return
		}
		size := 0
		for _, o := range outputs {
			size += len(o.Data)
		}
		if size > len(body)-r.header {
			t.Errorf("%d bytes of tensors in %d", size, len(body)-r.header)
		}
	})
}
