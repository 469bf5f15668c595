//go:build !linux

package hostpolicy

import "runtime"

// Bind does nothing: only Linux can bind threads.
func (p Policy) Bind() error { return nil }

// Cores returns the number of cores on which the calling thread may run.
func Cores() int { return runtime.NumCPU() }
