package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrLocked means that another holder has the lock.
var ErrLocked = errors.New("it is locked")

// TryLock opens or makes a file and locks it, until Unlock or until the process ends in any way. The
// lock is advisory and belongs to the opened file. A second TryLock gets ErrLocked, even in the same
// process.
func TryLock(path string) (*os.File, error) {
	f, err := openLocked(path, os.O_RDWR|os.O_CREATE, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrLocked
	}
	return f, err
}

// Unlock gives a lock of TryLock back and closes its file. Closing alone is not enough: a program that
// another goroutine is starting has the file for a moment, and the lock with it.
func Unlock(f *os.File) error { return errors.Join(lock(f, syscall.LOCK_UN), f.Close()) }

// TryLockFolder is TryLock for an existing folder. The holder of the lock may remove the folder;
// the error is then fs.ErrNotExist. systemd-tmpfiles never removes a locked folder, even an old
// one.
func TryLockFolder(dir string) (*os.File, error) {
	return tryLockAt(dir, os.O_RDONLY|syscall.O_DIRECTORY)
}

// tryLockAt opens and locks what has a name, and still has it then.
func tryLockAt(path string, flags int) (*os.File, error) {
	f, err := openLocked(path, flags, syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, ErrLocked
	case err != nil:
		return nil, err
	case !isAt(f, path):
		return nil, errors.Join(&fs.PathError{Op: "lock", Path: path, Err: fs.ErrNotExist}, f.Close())
	}
	return f, nil
}

// Lock protects a file between reading and writing. It blocks until other callers have unlocked it.
// The lock is a separate file beside it, which is removed when nobody holds it. On a file system
// without locks it does nothing.
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
				_ = os.Remove(name) // a remaining file is not locked
				_ = f.Close()       // nothing was written
			}, nil
		}
		_ = f.Close() // the holder of the lock has removed it
	}
}

// openLocked opens a file and locks it.
func openLocked(path string, flags, how int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lock(f, how); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lock locks an open file.
func lock(f *os.File, how int) error {
	err := error(syscall.EINTR)
	for errors.Is(err, syscall.EINTR) {
		err = syscall.Flock(int(f.Fd()), how)
	}
	if err != nil {
		return &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return nil
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
