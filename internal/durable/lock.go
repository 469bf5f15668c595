package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrLocked says that somebody else has a lock.
var ErrLocked = errors.New("it is locked")

// TryLock opens a file, which it makes where there is none, and takes its lock: until the file is closed or the process ends, however it ends.
// The lock is advisory, and the opened file's: a second one of the same process does not get it either, but ErrLocked.
func TryLock(path string) (*os.File, error) {
	f, err := openLocked(path, os.O_RDWR|os.O_CREATE, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrLocked
	}
	return f, err
}

// TryLockFolder is TryLock for a folder that exists. Whoever has the lock may remove the folder: the error is fs.ErrNotExist then.
// systemd-tmpfiles removes no folder that is locked, however old it is.
func TryLockFolder(dir string) (*os.File, error) {
	f, err := openLocked(dir, os.O_RDONLY|syscall.O_DIRECTORY, syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, ErrLocked
	case err != nil:
		return nil, err
	case !isAt(f, dir):
		return nil, errors.Join(&fs.PathError{Op: "lock", Path: dir, Err: fs.ErrNotExist}, f.Close())
	}
	return f, nil
}

// Lock keeps others that call it from a file that is about to be read and then written. It blocks until they have unlocked theirs. The lock is a
// file of its own beside that, which is gone when nobody has it. Where the file system has no locks, nobody is kept from anything.
func Lock(path string) (unlock func(), err error) {
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock")
	for {
		f, err := openLocked(name, os.O_RDWR|os.O_CREATE, syscall.LOCK_EX)
		if isWithoutLocks(err) {
			return func() { _ = os.Remove(name) }, nil
		}
		if err != nil {
			return nil, err
		}
		if isAt(f, name) {
			return func() {
				_ = os.Remove(name) // one that stays is locked by nobody
				_ = f.Close()       // nothing was written
			}, nil
		}
		_ = f.Close() // whoever had the lock has removed it
	}
}

// openLocked opens a file and takes its lock.
func openLocked(path string, flags, how int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), how)
	}
	if err != nil {
		return nil, errors.Join(&fs.PathError{Op: "lock", Path: path, Err: err}, f.Close())
	}
	return f, nil
}

// isAt reports whether an opened file still has a name.
func isAt(f *os.File, name string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(name)
	return err == nil && os.SameFile(opened, named)
}
