package rest

import (
	"runtime"
	"testing"
	"weak"
)

// A compressor that waits in its pool does not keep the answer that it made last, which nobody is charged for.
func TestCompressorsKeepNoAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []coding{codingGzip, codingDeflate} {
		f := New(nil, Options{})
		pool := &f.gzips
		if c == codingDeflate {
			pool = &f.zlibs
		}
		pack := func() weak.Pointer[byte] {
			b := reader{frontend: f}
			out, charged, err := b.deflate(c, make([]byte, 1<<20), &inference{})
			if err != nil || len(out) == 0 || charged < len(out) {
				t.Fatalf("%s: %d bytes, %d charged, %v", c, len(out), charged, err)
			}
			return weak.Make(&out[0])
		}
		answer, waiting := pack(), pool.Get()
		runtime.GC()
		if answer.Value() != nil {
			t.Errorf("%s: the compressor has its last answer", c)
		}
		runtime.KeepAlive(waiting)
	}
}
