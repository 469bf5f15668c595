//go:build !linux

package alarm

import "time"

// kernelTimer exists on Linux only.
type kernelTimer struct{}

func newKernelTimer(func()) *kernelTimer { return nil }

func (*kernelTimer) set(time.Duration) {}

func (*kernelTimer) close() {}
