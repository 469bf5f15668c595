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

// recorder is a test that only records whether it failed.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestBound(t *testing.T) {
	for _, c := range []struct {
		input, allocates int
		want             bool
	}{{0, 1 << 20, false}, {1 << 20, alloctest.Besides, false}, {0, alloctest.Besides + 1<<20, true}, {1 << 20, alloctest.Besides + 12<<20, true}} {
		r := &recorder{}
		check := alloctest.Bound(r, c.input)
		kept = make([]byte, c.allocates)
		check()
		if r.failed != c.want {
			t.Errorf("%d bytes for %d: failed %v, want %v", c.allocates, c.input, r.failed, c.want)
		}
	}
}
