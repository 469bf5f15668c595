package serve

import (
	"os"
	"runtime/debug"

	"tuner/engine/frontends"
)

// relaxCollector lets garbage grow to four times the live heap. Go's default is as much as the live heap: the heap of a
// server of small requests is a few MB, and would be collected hundreds of times a second, for 20 to 30 % of the CPU time
// of each request.
//
// Where large requests fill the memory, garbage is collected often enough to keep to half of it: the other half is ONNX
// Runtime's. The environment variables of Go's runtime have precedence. usable is the memory that this process can have,
// in bytes; 0: unknown.
func relaxCollector(usable int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if usable > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(usable / 2)
	}
}

// clientMemory is how much clients may make the server hold, in bytes: three eighths of the usable memory. That leaves an
// eighth to garbage, within the half that is not ONNX Runtime's.
func clientMemory(usable int64) int64 {
	if usable == 0 {
		return frontends.DefaultMaxMemory
	}
	return min(3*(usable/8), frontends.DefaultMaxMemory)
}
