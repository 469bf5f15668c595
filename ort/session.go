package ort

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"unsafe"

	binding "github.com/yalue/onnxruntime_go"

	"tuner/ort/hugepages"
)

// TensorInfo describes an input or output of a model.
type TensorInfo struct {
	Name  string
	Type  ElementType
	Shape []int64 // -1: the dimension may have any size; empty: a scalar
}

// Session is a model that is ready to run. Its methods may be called concurrently.
type Session struct {
	runtime    *Runtime
	inputs     []TensorInfo
	outputs    []TensorInfo
	constants  []TensorInfo // that a run may replace
	inputNames []*C.char    // of the inputs, then of the constants
	outputName map[string]*C.char
	runEntries map[string]string
	providers  []string // in order of preference, cpu last

	use     sync.RWMutex   // each run holds it for reading, so that Close waits for them
	session unsafe.Pointer // OrtSession; nil once closed
}

// ErrClosed is the error of a closed session.
var ErrClosed = errors.New("session is closed")

// NewSession loads a model file, with the external data beside it, and prepares it to run. If ONNX
// Runtime refuses the model, the error is an *Error with its code and message. A model is refused
// if an input or output is not a tensor, or has an element type that Triton lacks. The error names
// it.
func (r *Runtime) NewSession(modelPath string, o SessionOptions) (*Session, error) {
	defer keepSignalStack()()
	if len(o.OpLibraries) > 0 {
		r.operators.Lock()
		defer r.operators.Unlock()
	}
	options, err := o.build(r)
	if err != nil {
		return nil, err
	}
	defer options.Destroy()
	s := &Session{runtime: r, outputName: map[string]*C.char{}, runEntries: o.RunEntries, providers: o.providerNames()}
	path := C.CString(modelPath)
	defer C.free(unsafe.Pointer(path))
	if err := r.check(C.api_session(r.api, r.env, path, nativeOptions(options), &s.session)); err != nil {
		return nil, err
	}
	if err := s.describe(); err != nil {
		s.Close()
		return nil, fmt.Errorf("cannot serve model %q: %w", modelPath, err)
	}
	settleMemory()
	return s, nil
}

// settleMemory arranges the memory of this process after a load. First it returns what the load has
// left free, which differs from launch to launch, and would become huge pages too.
func settleMemory() {
	C.return_free_memory()
	_, _ = hugepages.Gather() // memory that it does not move serves as well, only slower
}

// nativeOptions returns the OrtSessionOptions, which the binding does not export. If the binding
// created the session, the error code would be lost.
func nativeOptions(options *binding.SessionOptions) unsafe.Pointer {
	return reflect.ValueOf(options).Elem().FieldByName("o").UnsafePointer()
}

// describe reads the session's inputs and outputs. It reports all refused ones together.
func (s *Session) describe() error {
	var counts [C.SIDES]C.size_t
	if err := s.runtime.check(C.api_session_counts(s.runtime.api, s.session, &counts[0])); err != nil {
		return err
	}
	var problems []error
	for i := range counts[C.kInputs] {
		info, err := s.describeOne(C.kInputs, i)
		s.inputs, problems = append(s.inputs, info), append(problems, err)
		s.inputNames = append(s.inputNames, C.CString(info.Name))
	}
	for i := range counts[C.kOutputs] {
		info, err := s.describeOne(C.kOutputs, i)
		s.outputs, problems = append(s.outputs, info), append(problems, err)
		s.outputName[info.Name] = C.CString(info.Name)
	}
	for i := range counts[C.kConstants] {
		if info, err := s.describeOne(C.kConstants, i); err == nil { // otherwise none can replace it, and it needs no other
			s.constants = append(s.constants, info)
			s.inputNames = append(s.inputNames, C.CString(info.Name))
		}
	}
	return errors.Join(problems...)
}

// describeOne reads one input, output or constant.
func (s *Session) describeOne(side C.enum_session_side, index C.size_t) (TensorInfo, error) {
	var name *C.char
	var view C.tensor_view
	if err := s.runtime.check(C.api_session_io(s.runtime.api, s.session, side, index, &name, &view)); err != nil {
		return TensorInfo{}, err
	}
	info := TensorInfo{Name: C.GoString(name)}
	if err := s.runtime.check(C.api_free(s.runtime.api, unsafe.Pointer(name))); err != nil {
		return info, err
	}
	if view.kind != tensorKind {
		return info, &KindError{Name: info.Name, Kind: kindName(int(view.kind))}
	}
	var err error
	info.Type, info.Shape, err = typeAndShape(&view)
	if err != nil {
		return info, fmt.Errorf("%s %q: %w", [C.SIDES]string{"input", "output", "constant"}[side], info.Name, err)
	}
	return info, nil
}

// tensorKind is ONNX_TYPE_TENSOR.
const tensorKind = 1

// kindName returns the name of a value of ONNX Runtime's ONNXType.
func kindName(kind int) string {
	names := []string{"ONNX_TYPE_UNKNOWN", "ONNX_TYPE_TENSOR", "ONNX_TYPE_SEQUENCE", "ONNX_TYPE_MAP", "ONNX_TYPE_OPAQUE", "ONNX_TYPE_SPARSETENSOR", "ONNX_TYPE_OPTIONAL"}
	if kind < 0 || kind >= len(names) {
		return names[0]
	}
	return names[kind]
}

// typeAndShape reads type and shape from a view. Unsupported types and ranks are errors.
func typeAndShape(v *C.tensor_view) (ElementType, []int64, error) {
	elementType := ElementType(v._type)
	if !elementType.IsSupported() {
		return 0, nil, fmt.Errorf("%v is not supported; the types are BOOL, UINT8 to UINT64, INT8 to INT64, FP16, BF16, FP32, FP64, STRING", elementType)
	}
	if v.rank > C.MAX_RANK {
		return 0, nil, fmt.Errorf("it has %d dimensions, at most %d are supported", v.rank, C.MAX_RANK)
	}
	shape := make([]int64, v.rank)
	for i := range shape {
		shape[i] = int64(v.dims[i])
	}
	return elementType, shape, nil
}

// Inputs returns the inputs that a run needs, in the model's order.
func (s *Session) Inputs() []TensorInfo { return cloneInfos(s.inputs) }

// Outputs returns the outputs in the model's order, with the shapes that ONNX Runtime has inferred.
func (s *Session) Outputs() []TensorInfo { return cloneInfos(s.outputs) }

// Constants returns the model's constants that a run may replace: the initializers that the file
// also declares as inputs (the overridable ones, in ONNX Runtime's words).
func (s *Session) Constants() []TensorInfo { return cloneInfos(s.constants) }

func cloneInfos(infos []TensorInfo) []TensorInfo {
	clones := slices.Clone(infos)
	for i := range clones {
		clones[i].Shape = slices.Clone(clones[i].Shape)
	}
	return clones
}

// Close waits for the runs in progress and frees the session's memory. It may be called twice.
func (s *Session) Close() error {
	s.use.Lock()
	defer s.use.Unlock()
	if s.session == nil {
		return nil
	}
	C.api_release(s.runtime.api, C.kReleaseSession, s.session)
	s.session = nil
	for _, name := range s.inputNames {
		C.free(unsafe.Pointer(name))
	}
	for _, name := range s.outputName {
		C.free(unsafe.Pointer(name))
	}
	C.return_free_memory()
	return nil
}
