package onnxruntime

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"tuner/engine"
	"tuner/modelconfig"
	"tuner/modelconfig/configpb"
	"tuner/ort"
)

// session is one instance of a model. Its buffers are used again for each batch.
type session struct {
	runtime *ort.Runtime
	session *ort.Session
	io      modelconfig.ModelIO
	types   []ort.ElementType // of the inputs
	buffers []*ort.Buffer     // of the inputs, as large as was needed so far; nil until then
	tensors []*ort.Tensor     // of the batch that is running
}

func newSession(r *ort.Runtime, s *ort.Session) (*session, error) {
	inputs, errIn := tensors(s.Inputs())
	outputs, errOut := tensors(s.Outputs())
	if err := errors.Join(errIn, errOut); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	out := &session{runtime: r, session: s, io: modelconfig.ModelIO{Inputs: inputs, Outputs: outputs}}
	for _, info := range s.Inputs() {
		out.types = append(out.types, info.Type)
	}
	out.buffers = make([]*ort.Buffer, len(inputs))
	out.tensors = make([]*ort.Tensor, len(inputs))
	return out, nil
}

// IO returns the model's inputs and outputs as ONNX Runtime has inferred them.
func (s *session) IO() modelconfig.ModelIO { return s.io }

// Close frees the session and its buffers.
func (s *session) Close() error {
	for i, b := range s.buffers {
		if b != nil {
			b.Close()
			s.buffers[i] = nil
		}
	}
	return s.session.Close()
}

// Execute gathers the batch, once, into memory that ONNX Runtime reads in place, and runs it. The outputs stay in ONNX
// Runtime's memory until they are freed.
func (s *session) Execute(b *engine.Batch) (engine.Result, error) {
	defer s.closeTensors()
	for i, want := range s.io.Inputs {
		in := slices.IndexFunc(b.Inputs, func(in engine.BatchInput) bool { return in.Name == want.Name })
		if in < 0 {
			return engine.Result{}, engine.Errorf(engine.Internal, "the batch lacks input '%s'", want.Name)
		}
		var err error
		if s.tensors[i], err = s.gather(i, &b.Inputs[in]); err != nil {
			return engine.Result{}, backendError(err)
		}
	}
	result := engine.Result{Gathered: time.Now()}
	values, err := s.session.Run(context.Background(), s.tensors, b.Outputs) // a run is never abandoned: it uses the requests' memory
	if err != nil {
		return engine.Result{}, backendError(err)
	}
	result.Computed = time.Now()
	result.Free = func() {
		for _, v := range values {
			v.Close()
		}
	}
	if result.Outputs, err = wireTensors(b.Outputs, values); err != nil {
		result.Free()
		return engine.Result{}, backendError(err)
	}
	return result, nil
}

func (s *session) closeTensors() {
	for i, t := range s.tensors {
		if t != nil {
			t.Close()
			s.tensors[i] = nil
		}
	}
}

// gather makes the tensor of an input. The data of a single request is used where it is.
func (s *session) gather(i int, in *engine.BatchInput) (*ort.Tensor, error) {
	if s.types[i] == ort.String {
		elements, err := splitStrings(in.Parts)
		if err != nil {
			return nil, err
		}
		return s.runtime.NewStringTensor(in.Shape, elements)
	}
	if len(in.Parts) == 1 {
		return s.runtime.NewTensor(s.types[i], in.Shape, in.Parts[0])
	}
	size := 0
	for _, p := range in.Parts {
		size += len(p)
	}
	memory, err := s.buffer(i, size)
	if err != nil {
		return nil, err
	}
	at := 0
	for _, p := range in.Parts {
		at += copy(memory[at:], p)
	}
	return s.runtime.NewTensor(s.types[i], in.Shape, memory)
}

// buffer returns size bytes of the input's buffer.
func (s *session) buffer(i, size int) ([]byte, error) {
	if b := s.buffers[i]; b != nil && len(b.Bytes()) >= size {
		return b.Bytes()[:size], nil
	}
	larger, err := ort.NewBuffer(size)
	if err != nil {
		return nil, err
	}
	if s.buffers[i] != nil {
		s.buffers[i].Close()
	}
	s.buffers[i] = larger
	return larger.Bytes(), nil
}

// splitStrings takes length-prefixed elements apart.
func splitStrings(parts [][]byte) ([][]byte, error) {
	var out [][]byte
	for _, p := range parts {
		for len(p) > 0 {
			if len(p) < 4 || uint64(len(p)-4) < uint64(binary.LittleEndian.Uint32(p)) {
				return nil, errors.New("incomplete string data")
			}
			n := 4 + int(binary.LittleEndian.Uint32(p))
			out, p = append(out, p[4:n]), p[n:]
		}
	}
	return out, nil
}

// wireTensors views the outputs in wire form; only strings are copied.
func wireTensors(names []string, values []*ort.Tensor) ([]engine.Tensor, error) {
	out := make([]engine.Tensor, len(values))
	for i, v := range values {
		t, err := dataType(v.Type())
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", names[i], err)
		}
		out[i] = engine.Tensor{Name: names[i], DataType: t, Shape: v.Shape(), Data: v.Bytes()}
		if t == configpb.DataType_TYPE_STRING {
			elements, err := v.Strings()
			if err != nil {
				return nil, err
			}
			for _, e := range elements {
				out[i].Data = binary.LittleEndian.AppendUint32(out[i].Data, uint32(len(e)))
				out[i].Data = append(out[i].Data, e...)
			}
		}
	}
	return out, nil
}
