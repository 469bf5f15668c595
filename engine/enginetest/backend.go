// Package enginetest is the engine without ONNX Runtime. It has a backend whose service time is a
// function of the batch, and a server on real loopback ports around it. Tests of the engine's front
// ends and of all code above the wire use it (runner, load, profile). It computes nothing real.
package enginetest

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"tuner/engine"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// Backend is a fake engine.Backend. If the rows of an output have as many bytes as those of the
// input at the same position, the output repeats that input. So tests notice mixed-up rows. Every
// other output is zero, or noise. Outputs that are freed change in each KiB, so that tests notice
// who reads them later.
type Backend struct {
	IO    modelconfig.ModelIO // of every model; zero value: Simple
	Noise bool                // outputs are random bytes in place of zeros, so that no compression makes them smaller
	// busy: running instances, including this one; nil: no time
	ServiceTime func(rows, busy int) time.Duration
	Fail        func(rows int) error                   // error of an execution; nil: never
	FailLoad    func(config *modelconfig.Config) error // error of a new session; nil: never

	busy    atomic.Int32
	created atomic.Int32
	open    atomic.Int32
	unfreed atomic.Int32 // results
}

// Simple returns two inputs and two outputs of 16 integers each.
func Simple() modelconfig.ModelIO {
	tensor := func(name string) modelconfig.Tensor {
		return modelconfig.Tensor{Name: name, DataType: configpb.DataType_TYPE_INT32, Dims: []int64{-1, 16}}
	}
	return modelconfig.ModelIO{
		Inputs:  []modelconfig.Tensor{tensor("INPUT0"), tensor("INPUT1")},
		Outputs: []modelconfig.Tensor{tensor("OUTPUT0"), tensor("OUTPUT1")},
	}
}

// Created returns the number of sessions made so far.
func (b *Backend) Created() int { return int(b.created.Load()) }

// Open returns the number of sessions that have not been closed.
func (b *Backend) Open() int { return int(b.open.Load()) }

// Unfreed returns the number of executions whose outputs have not been freed.
func (b *Backend) Unfreed() int { return int(b.unfreed.Load()) }

// NewSession makes a session. It does not read the model file.
func (b *Backend) NewSession(_ context.Context, _ engine.ModelFiles, config *modelconfig.Config, _ engine.Instance) (engine.Session, error) {
	if b.FailLoad != nil {
		if err := b.FailLoad(config); err != nil {
			return nil, err
		}
	}
	b.created.Add(1)
	b.open.Add(1)
	io := b.IO
	if len(io.Inputs) == 0 {
		io = Simple()
	}
	return &session{backend: b, io: io}, nil
}

type session struct {
	backend *Backend
	io      modelconfig.ModelIO
	closed  atomic.Bool
}

func (s *session) IO() modelconfig.ModelIO { return s.io }

func (s *session) Close() error {
	if !s.closed.Swap(true) {
		s.backend.open.Add(-1)
	}
	return nil
}

func (s *session) Execute(b *engine.Batch) (engine.Result, error) {
	busy := s.backend.busy.Add(1)
	defer s.backend.busy.Add(-1)
	rows := 1
	if len(b.Inputs) > 0 && len(b.Inputs[0].Shape) > 0 {
		rows = int(b.Inputs[0].Shape[0])
	}
	if s.backend.Fail != nil {
		if err := s.backend.Fail(rows); err != nil {
			return engine.Result{}, err
		}
	}
	result := engine.Result{Gathered: time.Now()}
	if s.backend.ServiceTime != nil {
		time.Sleep(s.backend.ServiceTime(rows, int(busy)))
	}
	result.Computed = time.Now()
	for _, name := range b.Outputs {
		i := slices.IndexFunc(s.io.Outputs, func(t modelconfig.Tensor) bool { return t.Name == name })
		result.Outputs = append(result.Outputs, s.backend.output(s.io.Outputs[i], i, rows, b.Inputs))
	}
	s.backend.unfreed.Add(1)
	result.Free = func() {
		for i := range result.Outputs {
			for k := 0; k < len(result.Outputs[i].Data); k += 1 << 10 { // all bytes would take seconds with the race detector
				result.Outputs[i].Data[k] ^= 0xff
			}
		}
		s.backend.unfreed.Add(-1)
	}
	return result, nil
}

// output makes the output at position i.
func (b *Backend) output(t modelconfig.Tensor, i, rows int, inputs []engine.BatchInput) engine.Tensor {
	out := engine.Tensor{Name: t.Name, DataType: t.DataType, Shape: slices.Clone(t.Dims)}
	elements := 1
	for k, d := range out.Shape {
		switch {
		case d >= 0:
		case k == 0:
			out.Shape[0] = int64(rows)
		case i < len(inputs) && k < len(inputs[i].Shape):
			out.Shape[k] = inputs[i].Shape[k]
		default:
			out.Shape[k] = 1
		}
		elements *= int(out.Shape[k])
	}
	size := elements * max(4, modelconfig.ByteSize(t.DataType)) // an empty string is 4 bytes
	if n := modelconfig.ByteSize(t.DataType); n > 0 {
		size = elements * n
	}
	if i < len(inputs) && inputs[i].DataType == t.DataType {
		if echo := slices.Concat(inputs[i].Parts...); len(echo) == size || t.DataType == configpb.DataType_TYPE_STRING {
			out.Data = echo
			return out
		}
	}
	out.Data = make([]byte, size)
	if b.Noise {
		_, _ = rand.NewChaCha8([32]byte{}).Read(out.Data) // it never fails
	}
	return out
}
