package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lockName is the file that the one writer of a folder's journal holds an advisory lock on; it has its process id.
const lockName = "journal.lock"

// acquire locks a folder for one writer, until the file is closed or the process ends, however it ends.
func acquire(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		pid, _ := io.ReadAll(io.LimitReader(f, 20)) // best effort: without it the message is only less helpful
		return fmt.Errorf("another campaign (process %s) is writing there; wait for it, or choose another output folder",
			strings.TrimSpace(string(pid)))
	}
	if err != nil {
		return fmt.Errorf("cannot lock %q: %w", f.Name(), err)
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, os.Getpid())
	return err
}
