package onnxruntime

import (
	"errors"
	"slices"
	"time"

	"tuner/engine"
	"tuner/engine/fault"
	"tuner/model/modelconfig"
	"tuner/ort"
)

// session is one instance of a model.
type session struct {
	session    *ort.Session
	plan       *ort.Plan // for all outputs of the last batch; nil until the first
	outputs    []string  // of the plan
	io         modelconfig.ModelIO
	types      []ort.ElementType          // of the inputs
	kinds      map[string]engine.DataType // of the outputs
	processors *processors
}

func newSession(s *ort.Session, p *processors) (*session, error) {
	inputs, errIn := tensors(s.Inputs())
	outputs, errOut := tensors(s.Outputs())
	if err := errors.Join(errIn, errOut); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	out := &session{session: s, io: modelconfig.ModelIO{Inputs: inputs, Outputs: outputs}, kinds: map[string]engine.DataType{}, processors: p}
	for _, info := range s.Inputs() {
		out.types = append(out.types, info.Type)
	}
	for _, t := range outputs {
		out.kinds[t.Name] = t.DataType
	}
	return out, nil
}

// IO returns the model's inputs and outputs as ONNX Runtime has inferred them.
func (s *session) IO() modelconfig.ModelIO { return s.io }

// Close frees the session and its buffers.
func (s *session) Close() error {
	if s.plan != nil {
		s.plan.Close()
	}
	return s.session.Close()
}

// Execute copies the batch once, into memory that ONNX Runtime reads in place, and runs it. The
// outputs stay in ONNX Runtime's memory until they are freed. A run is never abandoned, since it
// uses the requests' memory.
func (s *session) Execute(b *engine.Batch) (engine.Result, error) {
	if err := s.prepare(b.Outputs); err != nil {
		return engine.Result{}, backendError(err)
	}
	for i, want := range s.io.Inputs {
		in := slices.IndexFunc(b.Inputs, func(in engine.BatchInput) bool { return in.Name == want.Name })
		if in < 0 {
			s.plan.Discard()
			return engine.Result{}, fault.Errorf(fault.Internal, "the batch lacks input '%s'", want.Name)
		}
		if err := s.gather(i, &b.Inputs[in]); err != nil {
			s.plan.Discard()
			return engine.Result{}, backendError(err)
		}
	}
	result := engine.Result{Gathered: time.Now()}
	s.processors.enter()
	values, err := s.plan.Run()
	s.processors.leave()
	if err != nil {
		return engine.Result{}, backendError(err)
	}
	result.Computed = time.Now()
	result.Free = func() {
		for i := range values {
			values[i].Close()
		}
	}
	if result.Outputs, err = s.wireTensors(values); err != nil {
		result.Free()
		return engine.Result{}, backendError(err)
	}
	return result, nil
}

// prepare makes the plan for the given outputs, unless the current plan has them.
func (s *session) prepare(outputs []string) error {
	if s.plan != nil && slices.Equal(s.outputs, outputs) {
		return nil
	}
	plan, err := s.session.NewPlan(outputs)
	if err != nil {
		return err
	}
	if s.plan != nil {
		s.plan.Close()
	}
	s.plan, s.outputs = plan, slices.Clone(outputs)
	return nil
}

// gather passes the data of input i to the plan.
func (s *session) gather(i int, in *engine.BatchInput) error {
	if s.types[i] != ort.String {
		return s.plan.Gather(i, in.Shape, in.Parts)
	}
	return s.plan.GatherStrings(i, in.Shape, in.Parts)
}

// wireTensors returns the outputs in wire form. Only strings are copied.
func (s *session) wireTensors(values []ort.Tensor) ([]engine.Tensor, error) {
	out := make([]engine.Tensor, len(values))
	for i := range values {
		v := &values[i]
		out[i] = engine.Tensor{Name: s.outputs[i], DataType: s.kinds[s.outputs[i]], Shape: v.Shape(), Data: v.Bytes()}
		if v.Type() == ort.String {
			var err error
			if out[i].Data, err = v.Strings(); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
