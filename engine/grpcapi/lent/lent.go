// Package lent gives gRPC the memory of a model's outputs to write from, in place of a copy.
//
// gRPC frees a buffer once it has written it, or when its stream ends. When a connection ends, gRPC drops
// the buffers that wait there, and does not free them. The memory of outputs is not Go's, so nobody else
// would. So what gRPC has dropped is freed when the garbage collector finds it. Until then a writer may
// still read the memory.
//
// The package knows no model and no message.
package lent

import (
	"runtime"
	"sync/atomic"

	"google.golang.org/grpc/mem"
)

// Least is the size in bytes from which an output is lent. A smaller one is cheaper to copy than to follow
// (BenchmarkJoin). With twice the size, outputs of 64 to 128 KiB are copied, which takes some 10 µs each.
const Least = 64 << 10

// memory is lent in one or several buffers.
type memory struct {
	lent atomic.Int32 // buffers that are not freed
	free func()
	end  runtime.Cleanup // frees what gRPC drops
}

var _ mem.BufferPool = (*memory)(nil)

// Get is never called: gRPC only returns buffers.
func (m *memory) Get(length int) *[]byte {
	b := make([]byte, length)
	return &b
}

// Put ends the use of a buffer.
func (m *memory) Put(*[]byte) {
	if m.lent.Add(-1) > 0 {
		return
	}
	m.end.Stop()
	m.free()
}

// Join puts outputs of at least Least bytes into a text: output k follows the first at[k] bytes of it. It
// takes over the text's buffer, and copies nothing. Once gRPC no longer reads any output, it calls free,
// once.
func Join(text mem.Buffer, at []int, outputs [][]byte, free func()) mem.BufferSlice {
	m := &memory{free: free}
	m.lent.Store(int32(len(outputs)))
	m.end = runtime.AddCleanup(m, func(free func()) { free() }, free)
	joined := make(mem.BufferSlice, 0, 2*len(outputs)+1)
	from := 0
	for k := range outputs {
		joined = append(joined, text.Slice(from, at[k]), mem.NewBuffer(&outputs[k], m))
		from = at[k]
	}
	if from < text.Len() {
		joined = append(joined, text.Slice(from, text.Len()))
	}
	text.Free()
	return joined
}
