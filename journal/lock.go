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

// acquire locks a folder for one writer, until the file is closed or the process ends, however it ends.
func acquire(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := durable.TryLock(path)
	if errors.Is(err, durable.ErrLocked) {
		pid, _ := os.ReadFile(path) // best effort: without it the message is only less helpful
		return nil, fmt.Errorf("another campaign (process %s) is writing there; wait for it, or choose another output folder",
			strings.TrimSpace(string(pid)))
	}
	if err != nil {
		return nil, err
	}
	if err := sign(f); err != nil {
		return nil, errors.Join(err, f.Close())
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
