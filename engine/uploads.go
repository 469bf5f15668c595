package engine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"tuner/internal/durable"
)

// uploads holds the files that came with load requests: in one folder, which is the server's own and locked. It is removed when the
// server ends. If that is killed, the next one to start finds the folder unlocked, and removes it. The zero value is ready.
type uploads struct {
	mu   sync.Mutex
	dir  string   // empty: nothing has come yet
	lock *os.File // of the folder
}

// uploadsPattern names the folders of all servers.
const uploadsPattern = "tuner-models-*"

// add makes a folder for the files of one model.
func (u *uploads) add() (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for u.dir == "" {
		dir, err := os.MkdirTemp("", uploadsPattern)
		if err != nil {
			return "", err
		}
		lock, err := durable.TryLockFolder(dir)
		switch {
		case err == nil:
			u.dir, u.lock = dir, lock
		case !errors.Is(err, durable.ErrLocked) && !errors.Is(err, fs.ErrNotExist): // a server that starts is removing it
			return "", errors.Join(err, os.RemoveAll(dir))
		}
	}
	return os.MkdirTemp(u.dir, "")
}

// close removes everything.
func (u *uploads) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dir != "" {
		_ = os.RemoveAll(u.dir) // what stays is removed by the next server
		_ = u.lock.Close()      // nothing was written
	}
	u.dir = ""
}

// sweepUploads removes what servers have left that did not end in order. What cannot be removed is another user's.
func sweepUploads(temp string) {
	dirs, _ := filepath.Glob(filepath.Join(temp, uploadsPattern)) // fails only for a bad pattern
	for _, dir := range dirs {
		lock, err := durable.TryLockFolder(dir)
		if err != nil {
			continue // it is in use
		}
		_ = os.RemoveAll(dir)
		_ = lock.Close() // nothing was written
	}
}
