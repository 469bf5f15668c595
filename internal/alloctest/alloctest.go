// Package alloctest counts what code allocates, for tests that its memory and its work keep to a bound. Unlike time, the count does not
// depend on what else the machine does.
package alloctest

import "runtime"

// Bytes is how many bytes the process allocates while run runs, whether or not they are freed meanwhile: a buffer that grows counts several
// times. It counts what other goroutines allocate as well, so a test that calls it does not run in parallel.
func Bytes(run func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
