package ort

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"unsafe"
)

// Tensor is an input or output of a run. Its elements are little-endian and row-major.
type Tensor struct {
	runtime     *Runtime
	elementType ElementType
	shape       []int64
	bytes       []byte         // view of the elements; nil for strings
	value       unsafe.Pointer // OrtValue; nil once closed
	// own copy, if the caller's memory is not aligned to the element type
	aligned *Buffer
	pinned  runtime.Pinner
}

// NewTensor makes a tensor over data without a copy. data must not change while a run uses it, and
// may be reused once the tensor is closed. It may be memory of a Buffer or of Go, which is pinned
// until Close. Only data whose address is not a multiple of the element size is copied.
// NewStringTensor makes STRING tensors.
func (r *Runtime) NewTensor(t ElementType, shape []int64, data []byte) (*Tensor, error) {
	if t.Size() == 0 {
		return nil, fmt.Errorf("cannot make a tensor of %v from bytes", t)
	}
	size, err := byteSize(t, shape)
	if err != nil {
		return nil, err
	}
	if size != len(data) {
		return nil, fmt.Errorf("cannot make a tensor: shape %v of %v takes %d bytes, found %d", shape, t, size, len(data))
	}
	tensor := &Tensor{runtime: r, elementType: t, shape: slices.Clone(shape), bytes: data}
	if err := tensor.align(); err != nil {
		return nil, err
	}
	address := r.memory // ONNX Runtime needs an address even for an empty tensor; any will do
	if size > 0 {
		address = unsafe.Pointer(unsafe.SliceData(tensor.bytes))
		tensor.pinned.Pin(address)
	}
	dims := nativeDims(shape)
	err = r.check(C.api_tensor(r.api, r.memory, address, C.size_t(size), unsafe.SliceData(dims), C.size_t(len(dims)), C.int(t), &tensor.value))
	if err != nil {
		tensor.Close()
		return nil, err
	}
	return tensor, nil
}

// align copies the tensor's bytes into its own memory if their address does not suit the element
// type. Native code may use instructions that need alignment.
func (t *Tensor) align() error {
	address := uintptr(unsafe.Pointer(unsafe.SliceData(t.bytes)))
	if len(t.bytes) == 0 || address%uintptr(t.elementType.Size()) == 0 {
		return nil
	}
	buffer, err := NewBuffer(len(t.bytes))
	if err != nil {
		return err
	}
	copy(buffer.Bytes(), t.bytes)
	t.aligned, t.bytes = buffer, buffer.Bytes()
	return nil
}

// NewStringTensor makes a STRING tensor from the concatenated parts. Each part holds strings: a
// length in 32 bits, and that many bytes of any value. The strings are copied once, into ONNX
// Runtime's memory.
func (r *Runtime) NewStringTensor(shape []int64, parts [][]byte) (*Tensor, error) {
	count, err := elementCount(shape)
	if err != nil {
		return nil, err
	}
	dims := nativeDims(shape)
	tensor := &Tensor{runtime: r, elementType: String, shape: slices.Clone(shape)}
	if err := r.check(C.api_string_tensor(r.api, unsafe.SliceData(dims), C.size_t(len(dims)), &tensor.value)); err != nil {
		return nil, err
	}
	next := C.size_t(0)
	for _, part := range parts {
		text := (*C.char)(unsafe.Pointer(unsafe.SliceData(part)))
		if err := r.check(C.api_set_strings(r.api, tensor.value, text, C.size_t(len(part)), C.size_t(count), &next)); err != nil {
			tensor.Close()
			return nil, err
		}
		if next == C.SIZE_MAX {
			break
		}
	}
	if next != C.size_t(count) {
		tensor.Close()
		return nil, fmt.Errorf("cannot make a tensor: shape %v takes %d strings, found more, fewer or an incomplete one", shape, count)
	}
	return tensor, nil
}

// adoptAll takes ownership of values that ONNX Runtime has made.
func (r *Runtime) adoptAll(values []unsafe.Pointer) ([]*Tensor, error) {
	tensors := make([]*Tensor, len(values))
	var failed error
	for i, value := range values {
		tensors[i] = &Tensor{runtime: r, value: value}
		if err := tensors[i].view(); err != nil && failed == nil {
			failed = err
		}
	}
	if failed == nil {
		return tensors, nil
	}
	for _, t := range tensors {
		t.Close()
	}
	return nil, failed
}

// view reads type, shape and address of a value that ONNX Runtime has made.
func (t *Tensor) view() error {
	var view C.tensor_view
	if err := t.runtime.check(C.api_value_view(t.runtime.api, t.value, &view)); err != nil {
		return err
	}
	return t.read(&view)
}

// read sets the tensor's fields from a view.
func (t *Tensor) read(view *C.tensor_view) error {
	var err error
	if t.elementType, t.shape, err = typeAndShape(view); err != nil {
		return fmt.Errorf("cannot read an output: %w", err)
	}
	if t.elementType == String {
		return nil
	}
	size, err := byteSize(t.elementType, t.shape)
	if err != nil {
		return err
	}
	if size > 0 {
		t.bytes = unsafe.Slice((*byte)(view.data), size)
	}
	return nil
}

// Type returns the type of the elements.
func (t *Tensor) Type() ElementType { return t.elementType }

// Shape returns the tensor's dimensions. The caller must not change them.
func (t *Tensor) Shape() []int64 { return t.shape }

// Bytes returns the elements without a copy. They are valid until Close, even after the end of the
// session that made them. For STRING it is nil.
func (t *Tensor) Bytes() []byte { return t.bytes }

// Strings returns the elements of a STRING tensor, each as a length in 32 bits and that many bytes.
func (t *Tensor) Strings() ([]byte, error) {
	if t.elementType != String || t.value == nil {
		return nil, fmt.Errorf("cannot read strings: the tensor holds %v, or is closed", t.elementType)
	}
	count, err := elementCount(t.shape)
	if err != nil || count == 0 {
		return nil, err
	}
	var size C.size_t
	if err := t.runtime.check(C.api_strings_length(t.runtime.api, t.value, &size)); err != nil {
		return nil, err
	}
	const prefix = 4
	out := make([]byte, prefix*count+int(size))
	joined := out[prefix*count:] // each string then moves towards the front, next to its own length
	offsets := make([]C.size_t, count, count+1)
	err = t.runtime.check(C.api_strings(t.runtime.api, t.value, unsafe.Pointer(unsafe.SliceData(joined)), size, unsafe.SliceData(offsets), C.size_t(count)))
	if err != nil {
		return nil, err
	}
	offsets = append(offsets, size)
	at := 0
	for i := range count {
		text := joined[offsets[i]:offsets[i+1]]
		copy(out[at+prefix:], text)
		binary.LittleEndian.PutUint32(out[at:], uint32(len(text)))
		at += prefix + len(text)
	}
	return out, nil
}

// Close frees the memory that the tensor owns. Its bytes must not be used afterwards, and no run
// may be using the tensor. Close may be called twice.
func (t *Tensor) Close() {
	C.api_release(t.runtime.api, C.kReleaseValue, t.value)
	t.value, t.bytes = nil, nil
	t.pinned.Unpin()
	if t.aligned != nil {
		t.aligned.Close()
	}
}

// elementCount returns the number of elements of a shape. It is 1 for a scalar.
func elementCount(shape []int64) (int, error) {
	count := uint64(1)
	for _, dim := range shape {
		if dim < 0 {
			return 0, fmt.Errorf("cannot make a tensor: shape %v has a negative dimension", shape)
		}
		high, low := bits.Mul64(count, uint64(dim))
		if high != 0 || low > math.MaxInt {
			return 0, fmt.Errorf("cannot make a tensor: shape %v has too many elements", shape)
		}
		count = low
	}
	return int(count), nil
}

// byteSize returns the size of a tensor in bytes.
func byteSize(t ElementType, shape []int64) (int, error) {
	count, err := elementCount(shape)
	if err != nil {
		return 0, err
	}
	if count > math.MaxInt/t.Size() {
		return 0, fmt.Errorf("cannot make a tensor: shape %v of %v has too many bytes", shape, t)
	}
	return count * t.Size(), nil
}

func nativeDims(shape []int64) []C.int64_t {
	dims := make([]C.int64_t, len(shape))
	for i, dim := range shape {
		dims[i] = C.int64_t(dim)
	}
	return dims
}
