package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tuner/internal/durable"
)

// lockName is the file with the advisory lock for the one writer of a folder's journal. It contains
// the writer's process id.
const lockName = "journal.lock"

// CheckFree returns an error that names the other process if one is writing in a folder. It creates
// and changes nothing there.
func CheckFree(dir string) error {
	path := filepath.Join(dir, lockName)
	if _, err := os.Stat(path); err != nil { // locking would create the file
		return nil
	}
	f, err := tryLock(path)
	if err != nil {
		return fmt.Errorf("cannot write journal %q: %w", filepath.Join(dir, FileName), err)
	}
	return durable.Unlock(f)
}

// acquire locks a folder for one writer, until durable.Unlock or until the process ends in any way.
func acquire(dir string) (*os.File, error) {
	f, err := tryLock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	if err := sign(f); err != nil {
		return nil, errors.Join(err, durable.Unlock(f))
	}
	return f, nil
}

// tryLock locks a file, or names the process that holds the lock.
func tryLock(path string) (*os.File, error) {
	f, err := durable.TryLock(path)
	if errors.Is(err, durable.ErrLocked) {
		pid, _ := os.ReadFile(path) // best effort: without the number the message is only less helpful
		return nil, fmt.Errorf("another campaign (process %s) is writing there; wait for it, or choose another output folder",
			strings.TrimSpace(string(pid)))
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// sign writes this process's id into the lock's file.
func sign(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := fmt.Fprintln(f, os.Getpid())
	return err
}
