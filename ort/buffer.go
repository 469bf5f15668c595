package ort

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// Buffer is memory outside of Go's heap, aligned to 64 bytes, that a caller fills again and again and makes tensors of:
// the garbage collector neither scans nor moves it. It is not for concurrent use.
type Buffer struct {
	memory unsafe.Pointer
	size   int
}

// NewBuffer allocates size bytes, of unspecified content. The caller closes it.
func NewBuffer(size int) (*Buffer, error) {
	if size < 0 {
		return nil, fmt.Errorf("cannot allocate a buffer of %d bytes", size)
	}
	memory := C.aligned_buffer(C.size_t(max(size, 1)))
	if memory == nil {
		return nil, fmt.Errorf("cannot allocate a buffer of %d bytes: out of memory", size)
	}
	return &Buffer{memory, size}, nil
}

// Bytes returns the memory; it is valid until Close.
func (b *Buffer) Bytes() []byte { return unsafe.Slice((*byte)(b.memory), b.size) }

// Close gives back the memory; tensors over it must be closed before. Closing twice is safe.
func (b *Buffer) Close() {
	C.free(b.memory)
	b.memory, b.size = nil, 0
}
