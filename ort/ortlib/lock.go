package ortlib

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lock makes this process the only one that installs into the store. It waits while another process
// installs. The kernel releases the lock when the process ends, even after a crash.
func (s Store) lock(ctx context.Context, progress io.Writer) (unlock func(), err error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot write to the cache folder: %w; name another with TUNER_CACHE", err)
	}
	file, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot write to the cache folder: %w; name another with TUNER_CACHE", err)
	}
	for told := false; ; told = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil // closing unlocks
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("cannot lock %q: %w", file.Name(), err), file.Close())
		}
		if !told {
			// a failure does not matter, since the message is only for people
			fmt.Fprintln(progress, "waiting for another installation to end")
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), file.Close())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
