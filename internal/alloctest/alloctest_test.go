package alloctest_test

import (
	"testing"

	"tuner/internal/alloctest"
)

var kept []byte // keeps the compiler from removing the allocation

func TestBytes(t *testing.T) {
	const size = 1 << 20
	if n := alloctest.Bytes(func() { kept = make([]byte, size) }); n < size || n > 2*size {
		t.Errorf("%d bytes for %d", n, size)
	}
}
