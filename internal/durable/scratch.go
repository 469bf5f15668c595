package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Scratch is a temporary folder of this process. It is locked while the process needs it, and the
// kernel releases the lock when the process ends. So the next process that makes one of the same
// kind recognizes those of killed processes by their missing lock. The age of a folder is no
// criterion: clocks change, and a folder in use may be old.
type Scratch struct {
	Dir  string
	lock *os.File // nil if the file system has no locks
}

// NewScratch makes a folder in dir whose name begins with kind. It removes folders of that kind
// that nobody has locked. An empty dir is the system's folder for temporary files. On a file system
// without locks it removes nothing.
func NewScratch(dir, kind string) (*Scratch, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	SweepScratch(dir, kind)
	for {
		made, err := os.MkdirTemp(dir, kind+"*")
		if err != nil {
			return nil, err
		}
		lock, err := TryLockFolder(made)
		switch {
		case err == nil:
			return &Scratch{made, lock}, nil
		case isWithoutLocks(err):
			return &Scratch{made, nil}, nil
		// another process has treated it as a leftover
		case !errors.Is(err, ErrLocked) && !errors.Is(err, fs.ErrNotExist):
			return nil, errors.Join(err, os.RemoveAll(made))
		}
	}
}

// SweepScratch removes the folders of a kind that nobody has locked. It ignores folders that it
// cannot remove, which belong to other users, and names that do not end with a random number.
func SweepScratch(dir, kind string) {
	for _, folder := range leftovers(dir, kind) {
		lock, err := TryLockFolder(folder)
		if err != nil {
			continue // in use, or not a folder
		}
		_ = os.RemoveAll(folder)
		_ = lock.Close() // nothing was written
	}
}

// Close removes the folder. The next process that makes one of its kind removes what stays. Closing
// twice is safe.
func (s *Scratch) Close() error {
	err := os.RemoveAll(s.Dir)
	if s.lock != nil {
		_ = s.lock.Close() // nothing was written
		s.lock = nil
	}
	if err != nil {
		return fmt.Errorf("cannot remove the temporary folder %q: %w", s.Dir, Cause(err))
	}
	return nil
}

// isWithoutLocks reports whether a lock failed because the file system has none.
func isWithoutLocks(err error) bool {
	return errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS)
}
