//go:build !linux

package hugepages

// Gather does nothing: only Linux has these pages.
func Gather() (int, error) { return 0, nil }
