// Package onnxruntime is the engine's Backend on ONNX Runtime. It converts a model configuration to
// session options, as Triton's onnxruntime backend does, and runs batches in sessions. It is the
// only part of the engine that imports package ort, and it knows no requests, queues or wires.
package onnxruntime

import (
	"context"
	"errors"
	"fmt"

	"tuner/engine"
	"tuner/engine/fault"
	"tuner/model/modelconfig"
	"tuner/model/onnx/extent"
	"tuner/ort"
	"tuner/ort/addon"
	"tuner/ort/sessionoption"
)

// Backend makes sessions in one ONNX Runtime library.
type Backend struct {
	runtime    *ort.Runtime
	compiled   []string        // execution providers of the library
	noPlugIn   string          // reason why there is no plug-in provider; "" if there is one
	libraries  addon.Libraries // with operators that models may use
	processors *processors
}

// New returns a backend on an opened runtime. The caller keeps the runtime, which must outlive all
// sessions. A process has one backend. operators are the libraries with operators that models may
// name; no other one is opened.
func New(r *ort.Runtime, operators ...string) *Backend {
	return &Backend{runtime: r, compiled: r.Providers(), noPlugIn: r.MissingPlugIn(), libraries: addon.Libraries{Operators: operators}, processors: newProcessors()}
}

// NewSession loads the model file.
func (b *Backend) NewSession(ctx context.Context, files engine.ModelFiles, config *modelconfig.Config, in engine.Instance) (engine.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	options, err := b.options(config, in)
	if err != nil {
		return nil, err
	}
	constants, err := extent.Check(files.Path)
	if err != nil {
		return nil, fault.Errorf(fault.InvalidArgument, "%v", err)
	}
	s, err := b.runtime.NewSession(files.Path, boundFolding(options, config, files.Path, constants))
	if err != nil {
		return nil, backendError(err)
	}
	return newSession(s, b.processors, isShared(config))
}

// isShared reports whether the instances of a model run one session.
func isShared(config *modelconfig.Config) bool {
	o, err := modelconfig.ORTOptions(config)
	return err == nil && o.Settings.Value(sessionoption.ShareSession) == sessionoption.On
}

// backendError converts ONNX Runtime's errors to the form in which Triton passes them on.
func backendError(err error) error {
	var known *ort.Error
	if errors.As(err, &known) {
		return fault.Errorf(fault.Internal, "onnx runtime error %d: %s", known.Code, known.Message)
	}
	var kind *ort.KindError
	if errors.As(err, &kind) {
		return fault.Errorf(fault.Unsupported, "%v", kind)
	}
	return fault.Errorf(fault.Internal, "%v", err)
}

// options converts the session settings of a configuration.
func (b *Backend) options(config *modelconfig.Config, in engine.Instance) (ort.SessionOptions, error) {
	said, err := modelconfig.ORTOptions(config)
	if err != nil {
		return ort.SessionOptions{}, fault.Errorf(fault.InvalidArgument, "%v", err)
	}
	if err := checkPlugIn(b.noPlugIn, said); err != nil {
		return ort.SessionOptions{}, err
	}
	if err := checkCompiled(b.compiled, said, in); err != nil {
		return ort.SessionOptions{}, err
	}
	o, providers, err := said.Given(deviceOf(in))
	if err != nil {
		return ort.SessionOptions{}, fault.Errorf(fault.InvalidArgument, "%v", err)
	}
	out := ort.SessionOptions{Settings: o.Settings, Entries: o.Session}
	if out.OpLibraries, err = b.opLibraries(config); err != nil {
		return ort.SessionOptions{}, err
	}
	if o.ArenaShrinkage != "" {
		out.RunEntries = map[string]string{"memory.enable_memory_arena_shrinkage": o.ArenaShrinkage}
	}
	for _, p := range providers {
		out.Providers = append(out.Providers, ort.Provider(p))
	}
	return out, nil
}

// tensors converts a session's description of its inputs or outputs.
func tensors(infos []ort.TensorInfo) ([]modelconfig.Tensor, error) {
	var out []modelconfig.Tensor
	for _, info := range infos {
		t, err := dataType(info.Type)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", info.Name, err)
		}
		out = append(out, modelconfig.Tensor{Name: info.Name, DataType: t, Dims: info.Shape})
	}
	return out, nil
}

// dataType returns the configuration's name of an element type.
func dataType(t ort.ElementType) (engine.DataType, error) {
	if t == ort.String {
		return modelconfig.DataTypeOf("BYTES")
	}
	return modelconfig.DataTypeOf(t.String())
}
