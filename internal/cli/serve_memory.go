//go:build !noengine

package cli

import (
	"os"
	"runtime/debug"

	"tuner/engine/frontends"
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

// clientMemory is what clients may make the server hold, in bytes: three eighths of the usable memory, which leaves an eighth to
// garbage, within the half that is not ONNX Runtime's.
func clientMemory(usable int64) int64 {
	if usable == 0 {
		return frontends.DefaultMaxMemory
	}
	return min(3*(usable/8), frontends.DefaultMaxMemory)
}
