package grpcapi

import (
	"math/bits"
	"sync"

	"google.golang.org/grpc/mem"
)

// Sizes of the buffers that are kept: powers of two. Smaller ones are not worth it, larger ones are left to the garbage
// collector.
const (
	minBufferBits = 10
	maxBufferBits = 26
)

// buffers is a pool of buffers in steps of powers of two. gRPC's own has nothing between 32 KiB and 1 MiB and clears what it
// hands out; these are always written from end to end.
type buffers struct {
	kept [maxBufferBits - minBufferBits + 1]sync.Pool
}

var _ mem.BufferPool = (*buffers)(nil)

// capacity is that of the buffer which Get returns.
func (p *buffers) capacity(length int) int {
	if size := sizeBits(length); size <= maxBufferBits {
		return 1 << size
	}
	return length
}

func sizeBits(length int) int { return max(bits.Len(uint(max(length, 1)-1)), minBufferBits) }

// Get returns a buffer of a length; what is in it is undefined.
func (p *buffers) Get(length int) *[]byte {
	size := sizeBits(length)
	if size > maxBufferBits {
		b := make([]byte, length)
		return &b
	}
	b, ok := p.kept[size-minBufferBits].Get().(*[]byte)
	if !ok {
		fresh := make([]byte, 1<<size)
		b = &fresh
	}
	*b = (*b)[:length]
	return b
}

// Put takes a buffer back.
func (p *buffers) Put(b *[]byte) {
	size := bits.Len(uint(cap(*b))) - 1
	if size < minBufferBits || size > maxBufferBits || cap(*b) != 1<<size {
		return // not one of ours
	}
	p.kept[size-minBufferBits].Put(b)
}
