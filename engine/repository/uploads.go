package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"tuner/internal/durable"
)

// Uploads holds the files that came with load requests, in one locked folder of the server. The
// folder is removed when the server ends. If the server is killed, the next one to start finds the
// folder unlocked, and removes it. The zero value is ready.
type Uploads struct {
	mu      sync.Mutex
	scratch *durable.Scratch // nil: nothing has come yet
}

// uploadsKind begins the names of the folders of all servers.
const uploadsKind = "tuner-models-"

// SweepUploads removes the files of servers that were killed.
func SweepUploads() { durable.SweepScratch(os.TempDir(), uploadsKind) }

// add makes a folder for the files of one model.
func (u *Uploads) add() (string, error) {
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

// Close removes everything.
func (u *Uploads) Close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.scratch != nil {
		_ = u.scratch.Close() // the next server removes what stays
	}
	u.scratch = nil
}

// Write writes a model's files to a new folder, which remove removes. Their names are paths within
// the model's folder.
func (u *Uploads) Write(name string, files map[string][]byte) (m *Model, remove func(), err error) {
	root, err := u.add()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot create a folder for the files of model %q: %w", name, err)
	}
	remove = func() { _ = os.RemoveAll(root) }
	m = &Model{Name: name, root: root, Dir: filepath.Join(root, name)}
	for path, data := range files {
		if err := m.writeFile(path, data); err != nil {
			remove()
			return nil, nil, err
		}
	}
	if err := m.readVersions(); err != nil {
		remove()
		return nil, nil, err
	}
	return m, remove, nil
}

func (m *Model) writeFile(path string, data []byte) error {
	if !filepath.IsLocal(path) || strings.Contains(path, `\`) {
		return fmt.Errorf("file path %q leaves the model's folder", path)
	}
	file := filepath.Join(m.Dir, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("cannot store file %q of model %q: %w", path, m.Name, err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("cannot store file %q of model %q: %w", path, m.Name, err)
	}
	return nil
}
