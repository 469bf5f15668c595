package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"tuner/engine/api"
	"tuner/load"
)

// simple is the name of Triton's example model, which adds and subtracts two INT32[16] tensors.
const simple = "simple"

// simpleConfig is its configuration on a backend.
func simpleConfig(backend string) string {
	return fmt.Sprintf(`
name: %q
backend: %q
max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ 16 ] }, { name: "INPUT1" data_type: TYPE_INT32 dims: [ 16 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 16 ] }, { name: "OUTPUT1" data_type: TYPE_INT32 dims: [ 16 ] } ]
instance_group [ { count: 2 kind: KIND_CPU } ]
parameters { key: "intra_op_thread_count" value { string_value: "1" } }
`, simple, backend)
}

// frontendConcurrency is the number of requests in flight.
const frontendConcurrency = 16

// frontend compares the front ends: a model that takes no time, on Triton a few lines of C so that its ONNX Runtime
// backend does not count against it, on tuner the same model in ONNX.
func (b *bench) frontend(ctx context.Context) (err error) {
	o := b.or(10, time.Second)
	tunerRepository, err := b.repository(simple+".onnx", simpleConfig("onnxruntime"))
	if err != nil {
		return err
	}
	tritonRepository, err := b.addSubRepository(ctx)
	if err != nil {
		return err
	}
	c, err := b.start(ctx, tunerRepository, tritonRepository)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	var lines []comparison
	var failed error
	for _, way := range []struct {
		name, goal string
		run        client
	}{
		{"HTTP, perf_analyzer", "≥ 1.3", b.perfAnalyzer(simple, protocolHTTP, frontendConcurrency, o.window/2)},
		{"gRPC, perf_analyzer", "≥ 1.0", b.perfAnalyzer(simple, protocolGRPC, frontendConcurrency, o.window/2)},
		{"HTTP, light client", "≥ 2.2", light{frontendConcurrency, o.window, dialSimpleHTTP}.client(protocolHTTP)},
		{"gRPC, light client", "≥ 1.6", light{frontendConcurrency, o.window, dialSimpleGRPC}.client(protocolGRPC)},
	} {
		rounds, err := c.alternate(ctx, o.rounds, way.run)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", way.name, err))
			continue
		}
		lines = append(lines,
			comparison{way.name + ": throughput", "infer/s", rounds, throughput, 1, way.goal},
			comparison{way.name + ": p99 latency", "ms", rounds, p99, 1e3, ""},
			comparison{way.name + ": server CPU per 1,000 requests", "ms", rounds, cpuPerThousand, 1e3, "≤ 0.6"})
		fmt.Fprintf(b.messages, "frontend: %s done\n", way.name)
	}
	title := fmt.Sprintf("### Front ends: add_sub, INT32[16], concurrency %d; Triton with a backend of a few lines of C", frontendConcurrency)
	return errors.Join(failed, b.report(title, lines))
}

// simpleRequest is an inference of simple, and the outputs that it must have.
func simpleRequest() (r api.InferRequest, sum, difference []byte) {
	var a, b []byte
	for i := range int32(16) {
		x, y := 1000*i, i*i
		a, b = binary.LittleEndian.AppendUint32(a, uint32(x)), binary.LittleEndian.AppendUint32(b, uint32(y))
		sum = binary.LittleEndian.AppendUint32(sum, uint32(x+y))
		difference = binary.LittleEndian.AppendUint32(difference, uint32(x-y))
	}
	shape := []int64{1, 16}
	return api.InferRequest{Model: simple, Inputs: []api.Tensor{
		{Name: "INPUT0", Datatype: "INT32", Shape: shape, Data: a}, {Name: "INPUT1", Datatype: "INT32", Shape: shape, Data: b},
	}, Outputs: []string{"OUTPUT0", "OUTPUT1"}}, sum, difference
}

// dialSimpleHTTP connects a light client that sends what perf_analyzer sends: tensors in binary, all outputs asked for.
func dialSimpleHTTP(ctx context.Context, address string) (load.Sender, error) {
	r, sum, difference := simpleRequest()
	const header = `{"id":"","inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1,16],"parameters":{"binary_data_size":64}},` +
		`{"name":"INPUT1","datatype":"INT32","shape":[1,16],"parameters":{"binary_data_size":64}}],` +
		`"outputs":[{"name":"OUTPUT0","parameters":{"binary_data":true}},{"name":"OUTPUT1","parameters":{"binary_data":true}}]}`
	var request bytes.Buffer
	fmt.Fprintf(&request, "POST /v2/models/%s/infer HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\n%s: %d\r\nContent-Length: %d\r\n\r\n%s%s%s",
		simple, address, api.ContentTypeBytes, api.HeaderLength, len(header), len(header)+len(r.Inputs[0].Data)+len(r.Inputs[1].Data),
		header, r.Inputs[0].Data, r.Inputs[1].Data)
	return dialHTTP(ctx, address, request.Bytes(), sum, difference)
}

// dialSimpleGRPC connects a light client with a prepared message, and checks the first answer.
func dialSimpleGRPC(ctx context.Context, address string) (load.Sender, error) {
	r, sum, difference := simpleRequest()
	s, err := dial(address, r)
	if err != nil {
		return nil, err
	}
	answer, err := s.client.Infer(ctx, s.request)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	outputs, err := answer.Outputs()
	if err == nil && (len(outputs) != 2 || !bytes.Equal(outputs[0].Data, sum) || !bytes.Equal(outputs[1].Data, difference)) {
		err = fmt.Errorf("wrong answer: %v", outputs)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
