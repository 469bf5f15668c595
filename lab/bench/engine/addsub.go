package main

import (
	"context"
	"encoding/binary"
	"flag"
	"io"
	"log/slog"
	"runtime/debug"
	"time"

	"tuner/engine"
	"tuner/engine/enginetest"
	"tuner/engine/frontends"
	"tuner/engine/rest"
	"tuner/model/modelconfig"
)

// drainTime is the longest time of requests after the server was asked to end.
const drainTime = 5 * time.Second

// addsub serves with the engine's front ends and scheduler and a model that is a few lines of Go.
// Benchmark frontend compares it with a real Triton and a few lines of C, so that ONNX Runtime
// affects neither. It takes the options of tritonserver that package peers passes.
func addsub(ctx context.Context, args []string, _, messages io.Writer) error {
	debug.SetGCPercent(400) // like tuner serve
	var repository string
	var http, grpc, metrics frontends.Listen
	flags := flag.NewFlagSet(asAddsub, flag.ContinueOnError)
	flags.SetOutput(messages)
	flags.StringVar(&repository, "model-repository", "", "the model's folder lies here")
	for name, at := range map[string]*frontends.Listen{"http": &http, "grpc": &grpc, "metrics": &metrics} {
		at.Enabled = true
		flags.StringVar(&at.Address, name+"-address", "127.0.0.1", "")
		flags.IntVar(&at.Port, name+"-port", 0, "")
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	server, err := engine.Open(ctx, engine.Options{ID: "triton", Version: "test", Repositories: []string{repository},
		StrictReadiness: true, ExitOnError: true, Backend: bareBackend{}, Log: log})
	if err != nil {
		return err
	}
	defer server.Close()
	f, err := frontends.Open(server, frontends.Options{HTTP: http, GRPC: grpc, Metrics: metrics, REST: rest.Options{Log: log}, Log: log})
	if err != nil {
		return err
	}
	return f.Serve(ctx, drainTime)
}

// bareBackend makes sessions that add and subtract.
type bareBackend struct{}

// NewSession ignores the model's file.
func (bareBackend) NewSession(context.Context, engine.ModelFiles, *modelconfig.Config, engine.Instance) (engine.Session, error) {
	return &bareSession{}, nil
}

// bareSession is one instance. It keeps no state.
type bareSession struct{}

func (*bareSession) IO() modelconfig.ModelIO { return enginetest.Simple() }

func (*bareSession) Close() error { return nil }

// Execute adds and subtracts two tensors of 32-bit integers.
func (*bareSession) Execute(b *engine.Batch) (engine.Result, error) {
	result := engine.Result{Gathered: time.Now()}
	var sum, difference []byte
	for k := range b.Inputs[0].Parts {
		x, y := b.Inputs[0].Parts[k], b.Inputs[1].Parts[k]
		for i := 0; i < len(x); i += 4 {
			p, q := binary.LittleEndian.Uint32(x[i:]), binary.LittleEndian.Uint32(y[i:])
			sum = binary.LittleEndian.AppendUint32(sum, p+q)
			difference = binary.LittleEndian.AppendUint32(difference, p-q)
		}
	}
	for i, data := range [][]byte{sum, difference} {
		result.Outputs = append(result.Outputs, engine.Tensor{Name: b.Outputs[i], DataType: b.Inputs[0].DataType, Shape: b.Inputs[0].Shape, Data: data})
	}
	result.Computed = time.Now()
	return result, nil
}
