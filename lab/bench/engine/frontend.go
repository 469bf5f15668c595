package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"tuner/engine/api"
	"tuner/lab/bench/sidebyside"
	"tuner/lab/peers"
)

// simple is the name of Triton's example model, which adds and subtracts two INT32[16] tensors.
const simple = "simple"

// simpleConfig returns its configuration on a backend.
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

// way is one of the clients of a comparison.
type way struct {
	name string
	run  client
	goal string // of the throughput; "" for none
}

// frontend compares the front ends with a model that takes no time. First the model is a few lines
// of Go on our side and of C on Triton's, so that ONNX Runtime affects neither. Then tuner serve
// with ONNX Runtime meets the same Triton. Last both have ONNX Runtime, like users.
func (b *bench) frontend(ctx context.Context) error {
	o := b.or(10, time.Second)
	inONNX, err := b.repository(simple+".onnx", simpleConfig("onnxruntime"))
	if err != nil {
		return err
	}
	inC, err := b.addSubRepository(ctx)
	if err != nil {
		return err
	}
	lightHTTP := light{frontendConcurrency, o.window, dialSimpleHTTP}.client(sidebyside.HTTP)
	lightGRPC := light{frontendConcurrency, o.window, dialSimpleGRPC}.client(sidebyside.GRPC)
	ways := []way{
		{"HTTP, perf_analyzer", b.perfAnalyzer(simple, sidebyside.HTTP, frontendConcurrency, o.window/2), "≥ 1.3"},
		{"gRPC, perf_analyzer", b.perfAnalyzer(simple, sidebyside.GRPC, frontendConcurrency, o.window/2), "≥ 1.0"},
		{"HTTP, light client", lightHTTP, "≥ 2.2"},
		{"gRPC, light client", lightGRPC, "≥ 1.6"},
	}
	var all []comparison
	for _, part := range []struct {
		title string
		start func() (*contest, error)
		ways  []way
	}{
		{"Go / C", func() (*contest, error) { return b.startBare(ctx, inONNX, inC) }, ways},
		{"ORT / C", func() (*contest, error) { return b.start(ctx, inONNX, inC) }, ways},
		{"ORT / ORT", func() (*contest, error) { return b.start(ctx, inONNX, inONNX) }, []way{{"HTTP, light client", lightHTTP, ""}, {"gRPC, light client", lightGRPC, ""}}},
	} {
		lines, failed := b.frontends(ctx, part.title, part.start, part.ways)
		all, err = append(all, lines...), errors.Join(err, failed)
	}
	title := fmt.Sprintf("### Front ends: add_sub, INT32[16], concurrency %d; model of tuner / of Triton", frontendConcurrency)
	return errors.Join(err, b.report(title, all))
}

// startBare starts a real Triton with a few lines of C, and our front ends with a few lines of Go.
func (b *bench) startBare(ctx context.Context, ours, tritons string) (*contest, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	server, err := peers.StartServer(ctx, []string{self, asAddsub}, ours)
	us, err := newSide("tuner", server, err)
	if err != nil {
		return nil, err
	}
	return b.against(ctx, us, tritons)
}

// frontends measures every available client on one pair of servers.
func (b *bench) frontends(ctx context.Context, title string, start func() (*contest, error), ways []way) (lines []comparison, err error) {
	c, err := start()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	for _, w := range ways {
		rounds, failed := c.alternate(ctx, b.or(10, 0).rounds, w.run)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", w.name, failed))
			continue
		}
		costs, name := "", title+": "+w.name
		if w.goal != "" {
			costs = "≤ 0.6"
		}
		lines = append(lines,
			comparison{name + ": throughput", "infer/s", rounds, throughput, 1, w.goal},
			comparison{name + ": p99 latency", "ms", rounds, p99, 1e3, ""},
			comparison{name + ": server CPU per 1,000 requests", "ms", rounds, cpuPerThousand, 1e3, costs})
		fmt.Fprintf(b.messages, "frontend: %s, %s done\n", title, w.name)
	}
	return lines, err
}

// simpleRequest returns an inference of simple, and its expected outputs.
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

// dialSimpleHTTP connects a light client that sends the same as perf_analyzer: binary tensors, and
// a request for all outputs.
func dialSimpleHTTP(ctx context.Context, address string) (sender, error) {
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
func dialSimpleGRPC(ctx context.Context, address string) (sender, error) {
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
