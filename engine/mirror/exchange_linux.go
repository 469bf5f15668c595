package mirror

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// exchange puts the folder new where the folder old is, and the other way round, in one step. old may
// be missing.
func exchange(new, old string) error {
	err := unix.Renameat2(unix.AT_FDCWD, new, unix.AT_FDCWD, old, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.ENOENT) {
		return os.Rename(new, old)
	}
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // the file system cannot
		return exchangeInSteps(new, old)
	}
	return err
}

// freeBytes returns the bytes that are free on a folder's file system.
func freeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * s.Bsize, nil
}
