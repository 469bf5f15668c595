//go:build !noengine

package main

import (
	"os"
	"runtime/debug"

	"tuner/hostinfo"
)

// relaxCollector lets garbage grow to four times of what lives, instead of as much: the heap of a server of small requests
// is a few MB, and was collected hundreds of times a second, for 20 to 30 % of the CPU time of each request. Where large
// requests fill the memory, garbage is collected as often as it takes to keep to half of it: the rest is ONNX Runtime's. The
// environment variables of Go's runtime have precedence.
func relaxCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if usable := hostinfo.UsableMemory(); usable > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(usable / 2)
	}
}
