package ort

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"unsafe"
)

// Run computes the named outputs. inputs has a tensor for each of Inputs, in that order. The caller
// keeps the tensors, and must leave them open and unchanged until Run returns. The outputs live in
// ONNX Runtime's memory, and the caller closes them.
//
// If ctx ends before the run, ONNX Runtime is asked to stop between two operators, and the error is
// ctx's cause. A context that cannot end costs nothing. A failed run returns an *Error.
func (s *Session) Run(ctx context.Context, inputs []*Tensor, outputNames []string) ([]*Tensor, error) {
	if len(inputs) != len(s.inputs) {
		return nil, fmt.Errorf("cannot run the model: it has %d inputs, found %d tensors", len(s.inputs), len(inputs))
	}
	if len(outputNames) == 0 {
		return nil, fmt.Errorf("cannot run the model: no outputs are asked for")
	}
	values := make([]unsafe.Pointer, len(inputs), len(inputs)+len(outputNames))
	for i, t := range inputs {
		if values[i] = t.value; values[i] == nil {
			return nil, fmt.Errorf("cannot run the model: the tensor for input %q is closed", s.inputs[i].Name)
		}
	}
	names := make([]*C.char, len(outputNames))
	for i, name := range outputNames {
		if names[i] = s.outputName[name]; names[i] == nil {
			return nil, fmt.Errorf("cannot run the model: it has no output %q", name)
		}
	}
	results := make([]unsafe.Pointer, len(outputNames))
	if err := s.run(ctx, values, names, results); err != nil {
		return nil, err
	}
	return s.runtime.adoptAll(results)
}

// run calls ONNX Runtime. Close waits for it.
func (s *Session) run(ctx context.Context, inputs []unsafe.Pointer, names []*C.char, outputs []unsafe.Pointer) error {
	s.use.RLock()
	defer s.use.RUnlock()
	if s.session == nil {
		return fmt.Errorf("cannot run the model: %w", ErrClosed)
	}
	options, err := s.runOptions(ctx)
	if err != nil {
		return err
	}
	defer C.api_release(s.runtime.api, C.kReleaseRunOptions, options)
	defer s.terminateAtEnd(ctx, options)()
	err = s.runtime.check(C.api_run(s.runtime.api, s.session, options,
		unsafe.SliceData(s.inputNames), unsafe.SliceData(inputs), C.size_t(len(inputs)),
		unsafe.SliceData(names), C.size_t(len(names)), unsafe.SliceData(outputs)))
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("cannot finish the run: %w", context.Cause(ctx))
	}
	return err
}

// runOptions makes the options of one run. If there is nothing to set, it returns nil: ONNX
// Runtime's defaults.
func (s *Session) runOptions(ctx context.Context) (unsafe.Pointer, error) {
	if ctx.Done() == nil && len(s.runEntries) == 0 {
		return nil, nil
	}
	var options unsafe.Pointer
	if err := s.runtime.check(C.api_run_options(s.runtime.api, &options)); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(s.runEntries)) {
		if err := s.setRunEntry(options, key, s.runEntries[key]); err != nil {
			C.api_release(s.runtime.api, C.kReleaseRunOptions, options)
			return nil, err
		}
	}
	return options, nil
}

func (s *Session) setRunEntry(options unsafe.Pointer, key, value string) error {
	cKey, cValue := C.CString(key), C.CString(value)
	defer C.free(unsafe.Pointer(cKey))
	defer C.free(unsafe.Pointer(cValue))
	if err := s.runtime.check(C.api_run_options_entry(s.runtime.api, options, cKey, cValue)); err != nil {
		return fmt.Errorf("cannot set run entry %q to %q: %w", key, value, err)
	}
	return nil
}

// terminateAtEnd stops the run when ctx ends. The returned function ends this watch. The options
// may be released after it.
func (s *Session) terminateAtEnd(ctx context.Context, options unsafe.Pointer) func() {
	if ctx.Done() == nil {
		return func() {}
	}
	terminated := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(terminated)
		// setting the flag cannot fail
		C.api_status_end(s.runtime.api, C.api_terminate(s.runtime.api, options))
	})
	return func() {
		if !stop() {
			<-terminated
		}
	}
}
