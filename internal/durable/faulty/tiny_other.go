//go:build !linux

package faulty

import "testing"

// Tiny skips the test, since only Linux mounts a file system of 64 KiB here.
func Tiny(t testing.TB) string {
	t.Helper()
	t.Skip("needs Linux")
	return ""
}

// ReadOnly skips the test in the same way.
func ReadOnly(t testing.TB, _ func(dir string)) string { return Tiny(t) }
