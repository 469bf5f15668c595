package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tuner/internal/durable"
)

// lockName is the file that the one writer of a folder's journal holds an advisory lock on; it has its process id.
const lockName = "journal.lock"

// CheckFree returns an error that names the other process while one is writing in a folder. It makes and changes nothing there.
func CheckFree(dir string) error {
	path := filepath.Join(dir, lockName)
	if _, err := os.Stat(path); err != nil { // trying the lock would make its file
		return nil
	}
	f, err := tryLock(path)
	if err != nil {
		return fmt.Errorf("cannot write journal %q: %w", filepath.Join(dir, FileName), err)
	}
	return f.Close()
}

// acquire locks a folder for one writer, until the file is closed or the process ends, however it ends.
func acquire(dir string) (*os.File, error) {
	f, err := tryLock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	if err := sign(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// tryLock takes the lock of a file, or says who has it.
func tryLock(path string) (*os.File, error) {
	f, err := durable.TryLock(path)
	if errors.Is(err, durable.ErrLocked) {
		pid, _ := os.ReadFile(path) // best effort: without it the message is only less helpful
		return nil, fmt.Errorf("another campaign (process %s) is writing there; wait for it, or choose another output folder",
			strings.TrimSpace(string(pid)))
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// sign writes into the lock's file who has it.
func sign(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := fmt.Fprintln(f, os.Getpid())
	return err
}
