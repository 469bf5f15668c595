package grpcapi

import (
	"math/bits"
	"sync"

	"google.golang.org/grpc/mem"
)

// Sizes of the kept buffers: powers of two. Keeping smaller ones is not worth it. Larger ones are
// left to the garbage collector.
const (
	minBufferBits = 10
	maxBufferBits = 26
)

// buffers is a pool of buffers in powers of two. gRPC's own pool has no size between 32 KiB and 1
// MiB, and clears its buffers. These need no clearing, since they are always written from end to
// end.
type buffers struct {
	kept [maxBufferBits - minBufferBits + 1]sync.Pool
}

var _ mem.BufferPool = (*buffers)(nil)

// capacity returns the capacity of a buffer from Get.
func (p *buffers) capacity(length int) int {
	if size := sizeBits(length); size <= maxBufferBits {
		return 1 << size
	}
	return length
}

func sizeBits(length int) int { return max(bits.Len(uint(max(length, 1)-1)), minBufferBits) }

// Get returns a buffer of a length. Its content is undefined.
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
