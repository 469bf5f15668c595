package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Key stands for a request. It is a SHA-256, so that no client can make a request that gets the
// answer of another one.
type Key [sha256.Size]byte

// Hash makes a Key of the parts of a request. Each part is written with its length, so that
// different lists of parts never give the same bytes.
type Hash struct {
	sum   hash.Hash
	small []byte
}

// NewHash begins a key.
func NewHash() *Hash { return &Hash{sum: sha256.New(), small: make([]byte, 0, sha256.Size)} }

// Bytes adds a part.
func (h *Hash) Bytes(part []byte) {
	h.Number(int64(len(part)))
	_, _ = h.sum.Write(part) // it never fails
}

// Text adds a part.
func (h *Hash) Text(part string) {
	h.Number(int64(len(part)))
	h.small = append(h.small[:0], part...)
	_, _ = h.sum.Write(h.small)
}

// Number adds a number.
func (h *Hash) Number(n int64) {
	h.small = binary.LittleEndian.AppendUint64(h.small[:0], uint64(n))
	_, _ = h.sum.Write(h.small)
}

// Numbers adds a list of numbers as one part.
func (h *Hash) Numbers(list []int64) {
	h.Number(int64(len(list)))
	for _, n := range list {
		h.Number(n)
	}
}

// Key ends the key.
func (h *Hash) Key() Key { return Key(h.sum.Sum(h.small[:0])) }
