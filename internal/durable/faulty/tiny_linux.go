package faulty

import (
	"syscall"
	"testing"
)

// Tiny mounts a file system of 64 KiB until the test's end, and returns its folder. It skips the
// test if this process may not mount.
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

// ReadOnly mounts a read-only file system in the same way. fill writes its content before.
func ReadOnly(t testing.TB, fill func(dir string)) string {
	t.Helper()
	dir := Tiny(t)
	fill(dir)
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("cannot make a disk read-only: %v", err)
	}
	return dir
}
