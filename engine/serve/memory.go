package serve

import (
	"os"
	"runtime/debug"

	"tuner/engine/frontends"
)

// relaxCollector lets garbage grow to four times the live heap. With Go's default it grows to the
// size of the live heap. The heap of a server of small requests is a few MB. The default would
// collect it hundreds of times a second, which takes 20 to 30 % of the CPU time of each request.
//
// If large requests fill the memory, garbage is collected often enough to stay within half of it.
// The other half is for ONNX Runtime. The environment variables of Go's runtime have precedence.
// usable is the memory that this process can have in bytes; 0: unknown.
func relaxCollector(usable int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if usable > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(usable / 2)
	}
}

// clientMemory returns the bytes that clients may make the server hold: three eighths of the usable
// memory. That leaves an eighth for garbage, within the half that is not ONNX Runtime's.
func clientMemory(usable int64) int64 {
	if usable == 0 {
		return frontends.DefaultMaxMemory
	}
	return min(3*(usable/8), frontends.DefaultMaxMemory)
}
