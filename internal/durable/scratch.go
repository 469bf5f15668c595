package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Scratch is a temporary folder of this process. It is locked as long as the process needs it, and the kernel ends the
// lock with the process. So the next process that makes one of the same kind knows what a killed one has left, without
// asking how old it is: clocks are set, and a folder in use may be of any age.
type Scratch struct {
	Dir  string
	lock *os.File // nil where the file system has no locks
}

// NewScratch makes a folder in dir whose name begins with kind, and removes those of that kind that nobody has locked. An
// empty dir is the system's folder for temporary files. Where the file system has no locks, nothing is removed.
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
		case !errors.Is(err, ErrLocked) && !errors.Is(err, fs.ErrNotExist): // another process took it for a leftover
			return nil, errors.Join(err, os.RemoveAll(made))
		}
	}
}

// SweepScratch removes the folders of a kind that nobody has locked. What cannot be removed is another user's.
func SweepScratch(dir, kind string) {
	found, _ := filepath.Glob(filepath.Join(escape(dir), escape(kind)+"[0-9]*")) // fails only for a malformed pattern
	for _, folder := range found {
		lock, err := TryLockFolder(folder)
		if err != nil {
			continue // in use, or no folder
		}
		_ = os.RemoveAll(folder)
		_ = lock.Close() // nothing was written
	}
}

// Close removes the folder. What stays is removed by the next one of its kind. Closing twice is safe.
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
