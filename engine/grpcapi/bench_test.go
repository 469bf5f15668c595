package grpcapi_test

import (
	"testing"

	"tuner/engine/api"
	"tuner/engine/enginetest"
)

// BenchmarkInfer measures a whole request, including the client, of a model that takes no time.
// allocs/op counts both sides.
func BenchmarkInfer(b *testing.B) {
	e := enginetest.Start(b, enginetest.Options{Config: "max_batch_size: 8 dynamic_batching {} instance_group { count: 1 kind: KIND_CPU }"})
	c, err := api.NewGRPC(e.Addresses.GRPC)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	in := []api.Tensor{
		{Name: "INPUT0", Datatype: "INT32", Shape: []int64{1, 16}, Data: make([]byte, 64)},
		{Name: "INPUT1", Datatype: "INT32", Shape: []int64{1, 16}, Data: make([]byte, 64)},
	}
	r, err := c.Encode(api.InferRequest{Model: "fake", ID: "1", Inputs: in})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetParallelism(8)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := c.Infer(b.Context(), r); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
