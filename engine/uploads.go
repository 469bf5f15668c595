package engine

import (
	"os"
	"sync"

	"tuner/internal/durable"
)

// uploads holds the files that came with load requests, in one locked folder of the server. The
// folder is removed when the server ends. If the server is killed, the next one to start finds the
// folder unlocked, and removes it. The zero value is ready.
type uploads struct {
	mu      sync.Mutex
	scratch *durable.Scratch // nil: nothing has come yet
}

// uploadsKind begins the names of the folders of all servers.
const uploadsKind = "tuner-models-"

// add makes a folder for the files of one model.
func (u *uploads) add() (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.scratch == nil {
		scratch, err := durable.NewScratch("", uploadsKind)
		if err != nil {
			return "", err
		}
		u.scratch = scratch
	}
	return os.MkdirTemp(u.scratch.Dir, "")
}

// close removes everything.
func (u *uploads) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.scratch != nil {
		_ = u.scratch.Close() // the next server removes what stays
	}
	u.scratch = nil
}
