package faulty

import (
	"syscall"
	"testing"
)

// Tiny mounts a file system of 64 KiB until the test's end, and returns its folder. The test is skipped where this process may not.
func Tiny(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a tiny disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// ReadOnly mounts a file system that cannot be written in the same way, with what fill puts there before.
func ReadOnly(t testing.TB, fill func(dir string)) string {
	t.Helper()
	dir := Tiny(t)
	fill(dir)
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("cannot make a disk read-only: %v", err)
	}
	return dir
}
