package rest

import (
	"testing"

	"tuner/engine"
	"tuner/model/modelconfig/configpb"
)

const (
	benchJSON = `{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1,16],"data":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]},` +
		`{"name":"INPUT1","datatype":"INT32","shape":[1,16],"data":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]}]}`
	benchHead = `{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1,16],"parameters":{"binary_data_size":64}},` +
		`{"name":"INPUT1","datatype":"INT32","shape":[1,16],"parameters":{"binary_data_size":64}}],` +
		`"outputs":[{"name":"OUTPUT0","parameters":{"binary_data":true}},{"name":"OUTPUT1","parameters":{"binary_data":true}}]}`
)

// BenchmarkDecode reads a small request. It allocates nothing.
func BenchmarkDecode(b *testing.B) {
	for name, body := range map[string]string{"json": benchJSON, "binary": benchHead + string(make([]byte, 128))} {
		b.Run(name, func(b *testing.B) {
			header := len(body)
			if name == "binary" {
				header = len(benchHead)
			}
			text := []byte(body)
			r := &inferRequest{Request: engine.Request{Model: "m"}}
			b.ReportAllocs()
			for b.Loop() {
				r.reset()
				if err := r.decode(text, header); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEncode writes a small answer. It allocates nothing.
func BenchmarkEncode(b *testing.B) {
	tensor := engine.Tensor{Name: "OUTPUT0", DataType: configpb.DataType_TYPE_INT32, Shape: []int64{1, 16}, Data: make([]byte, 64)}
	response := &engine.Response{Model: "m", Version: 1, Outputs: []engine.Tensor{tensor, tensor}}
	for name, binary := range map[string]bool{"json": false, "binary": true} {
		b.Run(name, func(b *testing.B) {
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				dst, _, _ = appendResponse(dst[:0], response, &inferRequest{binaryAll: binary})
			}
		})
	}
}
