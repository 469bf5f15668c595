//go:build !noengine

package main

import (
	"os"
	"runtime/debug"
)

// relaxCollector lets garbage grow to four times of what lives, instead of as much: the heap of a server of small requests
// is a few MB, and was collected hundreds of times a second, for 20 to 30 % of the CPU time of each request. Where large
// requests fill the memory, garbage is collected as often as it takes to keep to half of it: the rest is ONNX Runtime's. The
// environment variables of Go's runtime have precedence. usable is the memory that this process can have, in bytes; 0: unknown.
func relaxCollector(usable int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if usable > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(usable / 2)
	}
}

// eighths is so many eighths of the usable memory, in bytes, but no more than bound, which stands where that is unknown.
func eighths(n, usable, bound int64) int64 {
	if usable == 0 {
		return bound
	}
	return min(n*(usable/8), bound)
}
