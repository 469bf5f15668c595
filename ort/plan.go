package ort

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"
)

// inPlaceBytes is the size from which the data of an input is used in place. A smaller input is
// copied into the plan's own memory, since the copy takes less time than pinning Go's memory.
const inPlaceBytes = 32 << 10

// keptBytes is the size up to which an input's buffer is kept for the next run.
const keptBytes = 64 << 20

// Plan is a session prepared for repeated runs with the same outputs and inputs. The names, the run options,
// and the memory for gathered inputs are made once. It is not for concurrent use.
type Plan struct {
	session *Session
	native  *C.run_plan  // nil once closed
	infos   []TensorInfo // of the inputs, then of the replaced constants
	buffers []*Buffer    // of the inputs, with the largest size so far; nil until needed
	strings []*Tensor    // of the inputs that are strings
	// outputs that are an input: ONNX Runtime returns the memory of the gathered input
	passed []bool
	pinned runtime.Pinner
}

// NewPlan prepares runs that compute the named outputs. The inputs of a run are those of the session,
// then the named constants, which it replaces. The caller closes the plan before the session.
func (s *Session) NewPlan(outputNames []string, constants ...string) (*Plan, error) {
	if len(outputNames) == 0 {
		return nil, errors.New("cannot run the model: no outputs are asked for")
	}
	p := &Plan{session: s, infos: slices.Clone(s.inputs)}
	names := slices.Clone(s.inputNames[:len(s.inputs)])
	for _, name := range constants {
		i := slices.IndexFunc(s.constants, func(c TensorInfo) bool { return c.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("cannot run the model: it has no constant %q that a run may replace", name)
		}
		p.infos, names = append(p.infos, s.constants[i]), append(names, s.inputNames[len(s.inputs)+i])
	}
	p.buffers, p.strings = make([]*Buffer, len(p.infos)), make([]*Tensor, len(p.infos))
	p.native = C.plan_new(C.size_t(len(p.infos)), C.size_t(len(outputNames)))
	if p.native == nil {
		return nil, errors.New("cannot prepare a run: out of memory")
	}
	copy(unsafe.Slice(p.native.input_names, len(names)), names)
	for i, info := range p.infos {
		p.inputs()[i]._type = C.int(info.Type)
	}
	for i, name := range outputNames {
		native := s.outputName[name]
		if native == nil {
			p.Close()
			return nil, fmt.Errorf("cannot run the model: it has no output %q", name)
		}
		unsafe.Slice(p.native.output_names, len(outputNames))[i] = native
		p.passed = append(p.passed, slices.ContainsFunc(p.infos, func(in TensorInfo) bool { return in.Name == name }))
	}
	var err error
	if p.native.options, err = s.runOptions(context.Background()); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Plan) inputs() []C.plan_input { return unsafe.Slice(p.native.inputs, len(p.buffers)) }

// Gather concatenates parts as the data of input i for the next run. The parts must not change
// until the run has ended. They are copied, except a single large one. The elements must not be
// strings.
func (p *Plan) Gather(i int, shape []int64, parts [][]byte) error {
	t := p.infos[i].Type
	if t.Size() == 0 {
		return fmt.Errorf("cannot make a tensor of %v from bytes", t)
	}
	found := 0
	for _, part := range parts {
		found += len(part)
	}
	size, err := byteSize(t, shape)
	if err != nil {
		return err
	}
	if size != found {
		return fmt.Errorf("cannot make a tensor: shape %v of %v takes %d bytes, found %d", shape, t, size, found)
	}
	if len(parts) == 1 && size >= inPlaceBytes && uintptr(unsafe.Pointer(unsafe.SliceData(parts[0])))%uintptr(t.Size()) == 0 {
		address := unsafe.Pointer(unsafe.SliceData(parts[0]))
		p.pinned.Pin(address)
		return p.set(i, shape, address, size)
	}
	memory, err := p.buffer(i, size)
	if err != nil {
		return err
	}
	at := 0
	for _, part := range parts {
		at += copy(memory[at:], part)
	}
	return p.set(i, shape, unsafe.Pointer(unsafe.SliceData(memory)), size)
}

// GatherStrings copies the strings in parts (see NewStringTensor) as the data of input i for the
// next run.
func (p *Plan) GatherStrings(i int, shape []int64, parts [][]byte) error {
	t, err := p.session.runtime.NewStringTensor(shape, parts)
	if err != nil {
		return err
	}
	if p.strings[i] != nil { // from a run that was not made
		p.strings[i].Close()
	}
	p.strings[i] = t
	p.inputs()[i].value = t.value
	return nil
}

// buffer returns size bytes of the input's buffer.
func (p *Plan) buffer(i, size int) ([]byte, error) {
	if b := p.buffers[i]; b != nil && len(b.Bytes()) >= size {
		return b.Bytes()[:size], nil
	}
	larger, err := NewBuffer(max(size, 1)) // ONNX Runtime needs an address even for an empty tensor
	if err != nil {
		return nil, err
	}
	if p.buffers[i] != nil {
		p.buffers[i].Close()
	}
	p.buffers[i] = larger
	return larger.Bytes()[:size], nil
}

func (p *Plan) set(i int, shape []int64, data unsafe.Pointer, size int) error {
	if len(shape) > C.MAX_RANK {
		return fmt.Errorf("cannot make a tensor: it has %d dimensions, at most %d are supported", len(shape), C.MAX_RANK)
	}
	in := &p.inputs()[i]
	in.data, in.size, in.rank = data, C.size_t(size), C.size_t(len(shape))
	for k, d := range shape {
		in.dims[k] = C.int64_t(d)
	}
	return nil
}

// Run computes the outputs. All inputs must have been gathered since the last run. The outputs live
// in ONNX Runtime's memory, and the caller closes them. A failed run returns an *Error.
func (p *Plan) Run() ([]Tensor, error) {
	return p.run(func(s *Session) error {
		return s.runtime.check(C.api_run_plan(s.runtime.api, s.session, s.runtime.memory, p.native))
	})
}

// RunOn is Run on a lane.
func (p *Plan) RunOn(l *Lane) ([]Tensor, error) {
	return p.run(func(s *Session) error { return l.run(s, p) })
}

func (p *Plan) run(compute func(*Session) error) ([]Tensor, error) {
	defer p.Discard()
	s := p.session
	s.use.RLock()
	defer s.use.RUnlock()
	if s.session == nil || p.native == nil {
		return nil, fmt.Errorf("cannot run the model: %w", ErrClosed)
	}
	for i, in := range p.inputs() {
		if in.value == nil && in.data == nil {
			return nil, fmt.Errorf("cannot run the model: input %q has no data", p.infos[i].Name)
		}
	}
	if err := compute(s); err != nil {
		return nil, err
	}
	return p.adopt()
}

// Discard drops the gathered inputs of a run that is not made.
func (p *Plan) Discard() {
	p.pinned.Unpin()
	if p.native == nil {
		return
	}
	for i := range p.inputs() {
		in := &p.inputs()[i]
		in.value, in.data = nil, nil
		if p.strings[i] != nil {
			p.strings[i].Close()
			p.strings[i] = nil
		}
		if b := p.buffers[i]; b != nil && len(b.Bytes()) > keptBytes {
			b.Close()
			p.buffers[i] = nil
		}
	}
}

// adopt takes ownership of the values of the last run.
func (p *Plan) adopt() ([]Tensor, error) {
	n := int(p.native.output_count)
	values, views := unsafe.Slice(p.native.outputs, n), unsafe.Slice(p.native.views, n)
	tensors := make([]Tensor, n)
	var failed error
	for i := range tensors {
		tensors[i] = Tensor{runtime: p.session.runtime, value: values[i]}
		if err := tensors[i].read(&views[i]); err != nil && failed == nil {
			failed = err
		}
		if p.passed[i] {
			tensors[i].bytes = slices.Clone(tensors[i].bytes)
		}
	}
	if failed == nil {
		return tensors, nil
	}
	for i := range tensors {
		tensors[i].Close()
	}
	return nil, failed
}

// Close frees the plan's memory. Outputs stay valid. Close may be called twice.
func (p *Plan) Close() {
	if p.native == nil {
		return
	}
	p.Discard()
	for _, b := range p.buffers {
		if b != nil {
			b.Close()
		}
	}
	C.api_release(p.session.runtime.api, C.kReleaseRunOptions, p.native.options)
	C.plan_free(p.native)
	p.native = nil
}
