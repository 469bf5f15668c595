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

// Buffer is memory outside Go's heap, aligned to 64 bytes, that a caller fills repeatedly and makes
// tensors of. The garbage collector neither scans nor moves it. It is not for concurrent use.
type Buffer struct {
	memory unsafe.Pointer
	size   int
}

// NewBuffer allocates size bytes with unspecified content. The caller closes it.
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

// Bytes returns the memory. It is valid until Close.
func (b *Buffer) Bytes() []byte { return unsafe.Slice((*byte)(b.memory), b.size) }

// Close frees the memory. Tensors over it must be closed before. Close may be called twice.
func (b *Buffer) Close() {
	C.free(b.memory)
	b.memory, b.size = nil, 0
}
