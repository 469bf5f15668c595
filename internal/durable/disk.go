package durable

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// Disk has the operations of the operating system that writing needs. Tests replace it by one that
// fails (package faulty).
type Disk interface {
	Create(dir, pattern string) (File, error) // a new file that all can read, locked; pattern as in os.CreateTemp
	Append(path string) (File, error)         // an existing file, written at its end
	Rename(from, to string) error
	Remove(path string) error
	SyncDir(dir string) error // makes changes of a folder's entries durable
}

// File is a file that is being written.
type File interface {
	io.WriteCloser
	Name() string
	Sync() error
	Truncate(size int64) error
}

// OS is this machine's disks.
type OS struct{}

// Create makes a file. It is locked until it is closed, if the file system has locks.
func (OS) Create(dir, pattern string) (File, error) {
	for {
		f, err := os.CreateTemp(dir, pattern)
		if err != nil {
			return nil, err
		}
		err = lock(f, syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) || err == nil && !isAt(f, f.Name()) {
			_ = f.Close() // another process has treated it as a leftover
			continue
		}
		if isWithoutLocks(err) {
			err = nil
		}
		if err := errors.Join(err, f.Chmod(0o644)); err != nil {
			return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
		return f, nil
	}
}

// Append opens a file.
func (OS) Append(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Rename renames a file.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove removes a file.
func (OS) Remove(path string) error { return os.Remove(path) }

// SyncDir syncs a folder.
func (OS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
