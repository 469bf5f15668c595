//go:build !linux

package alarm

import "time"

// kernelTimer is there on Linux alone.
type kernelTimer struct{}

func newKernelTimer(func()) *kernelTimer { return nil }

func (*kernelTimer) set(time.Duration) {}

func (*kernelTimer) close() {}
