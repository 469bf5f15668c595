// Package alloctest counts allocations, for tests that bound memory and work. Unlike time, the
// count does not depend on the load of the machine.
package alloctest

import "runtime"

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
