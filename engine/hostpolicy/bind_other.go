//go:build !linux

package hostpolicy

// Bind does nothing: only Linux can bind threads.
func (p Policy) Bind() error { return nil }
