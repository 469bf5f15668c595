//go:build !linux

package hostpolicy

import "runtime"

// Bind does nothing: only Linux can bind threads.
func (p Policy) Bind() error { return nil }

// Cores is the number of cores that the calling thread may run on.
func Cores() int { return runtime.NumCPU() }
