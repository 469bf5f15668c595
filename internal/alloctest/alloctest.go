// Package alloctest counts allocations, for tests that bound memory and work. Unlike time, the
// count does not depend on the load of the machine.
package alloctest

import (
	"runtime"
	"runtime/metrics"
	"testing"
)

// Bytes returns the number of bytes that the process allocates while run runs, including freed
// ones: a buffer that grows counts several times. Allocations of other goroutines count too, so a
// test that calls it must not run in parallel.
func Bytes(run func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A parser of foreign bytes may allocate PerByte times the size of its input, plus Besides bytes.
const (
	PerByte = 10
	Besides = 64 << 20
)

// Bound returns a check that fails if more bytes were allocated since than an input of this size
// justifies. A fuzz target defers the check. Nothing else may allocate meanwhile:
//
//	defer alloctest.Bound(t, len(input))()
func Bound(t testing.TB, size int) (check func()) {
	before := allocated()
	return func() {
		t.Helper()
		if n, most := allocated()-before, uint64(size)*PerByte+Besides; n > most {
			t.Errorf("%d bytes are allocated for an input of %d, want at most %d", n, size, most)
		}
	}
}

// allocated returns the number of bytes that the process has allocated so far. Unlike
// runtime.ReadMemStats it does not stop the world.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
