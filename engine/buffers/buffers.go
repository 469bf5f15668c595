// Package buffers keeps memory for tensors that are on their way: messages, answers, copies of regions.
//
// It allocates, and charges nobody: the holder of an account does (package budget).
package buffers

import (
	"math/bits"
	"sync"
)

// Sizes of the kept buffers: powers of two. Keeping smaller ones is not worth it. Larger ones are
// left to the garbage collector.
const (
	minBits = 10
	maxBits = 26
	// Largest is the capacity of the largest buffer that is kept.
	Largest = 1 << maxBits
)

// Pool is a pool of buffers in powers of two. gRPC's own pool has no size between 32 KiB and 1 MiB,
// and clears its buffers. These need no clearing, since they are always written from end to end. The
// zero value is ready.
type Pool struct {
	kept [maxBits - minBits + 1]sync.Pool
}

// Capacity returns the capacity of a buffer from Get.
func (p *Pool) Capacity(length int) int {
	if size := sizeBits(length); size <= maxBits {
		return 1 << size
	}
	return length
}

func sizeBits(length int) int { return max(bits.Len(uint(max(length, 1)-1)), minBits) }

// Get returns a buffer of a length. Its content is undefined.
func (p *Pool) Get(length int) *[]byte {
	size := sizeBits(length)
	if size > maxBits {
		b := make([]byte, length)
		return &b
	}
	b, ok := p.kept[size-minBits].Get().(*[]byte)
	if !ok {
		fresh := make([]byte, 1<<size)
		b = &fresh
	}
	*b = (*b)[:length]
	return b
}

// Put takes a buffer back.
func (p *Pool) Put(b *[]byte) {
	size := bits.Len(uint(cap(*b))) - 1
	if size < minBits || size > maxBits || cap(*b) != 1<<size {
		return // not one of ours
	}
	p.kept[size-minBits].Put(b)
}
