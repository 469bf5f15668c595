package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"tuner/lab/bench/sidebyside"
)

// identity is the model that returns its input.
const identity = "identity_float"

const identityConfig = `
name: "identity_float"
backend: "onnxruntime"
max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
instance_group [ { count: 2 kind: KIND_CPU } ]
parameters { key: "intra_op_thread_count" value { string_value: "1" } }
`

// largeTensor is the size of an input and of an output, in bytes.
const largeTensor = 10 << 20

// large compares tensors of 10 MiB, which the model returns as they are: over the wire, and in regions of
// shared memory.
func (b *bench) large(ctx context.Context) (err error) {
	o := b.or(10, time.Second)
	repository, err := b.repository(identity+".onnx", identityConfig)
	if err != nil {
		return err
	}
	tuner, err := b.startTuner(ctx, repository, "--allow-client-shm=true") // Triton 24.10 allows it without a flag
	if err != nil {
		return err
	}
	c, err := b.against(ctx, tuner, repository)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	shape := []string{"--shape", "INPUT0:" + strconv.Itoa(largeTensor/4)}
	shared := append([]string{"--shared-memory", "system", "--output-shared-memory-size", strconv.Itoa(largeTensor)}, shape...)
	var lines []comparison
	var failed error
	for _, way := range []struct {
		name, protocol string
		args           []string
		goal           string
	}{
		{"HTTP", sidebyside.HTTP, shape, ""},
		{"gRPC", sidebyside.GRPC, shape, "≥ 1.2"},
		{"HTTP, shared memory", sidebyside.HTTP, shared, "≥ 1.2"},
		{"gRPC, shared memory", sidebyside.GRPC, shared, "≥ 1.2"},
	} {
		for _, concurrency := range []int{1, 4} {
			name := fmt.Sprintf("%s, concurrency %d", way.name, concurrency)
			rounds, err := c.alternate(ctx, o.rounds, b.perfAnalyzer(identity, way.protocol, concurrency, o.window/3, way.args...))
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
				continue
			}
			lines = append(lines,
				comparison{name + ": throughput", "infer/s", rounds, throughput, 1, way.goal},
				comparison{name + ": p99 latency", "ms", rounds, p99, 1e3, ""},
				comparison{name + ": server CPU per 1,000 requests", "s", rounds, cpuPerThousand, 1, ""})
			fmt.Fprintf(b.messages, "large: %s done\n", name)
		}
	}
	return errors.Join(failed, b.report(fmt.Sprintf("### Large tensors: %d MiB in and out, perf_analyzer", largeTensor>>20), lines))
}
