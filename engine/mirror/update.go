package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"tuner/engine/objects"
)

const (
	// slowest is the rate below which a download is given up, in bytes a second, after objectTime.
	slowest    = 128 << 10
	objectTime = time.Minute
	// spared is the part of the free bytes that stays free: one in spared.
	spared = 10
)

// update makes a model's folder have exactly these files, by their paths within it. Those that have
// not changed keep their time, so that the engine sees what has. It stages the folder beside, and
// exchanges the two.
func (r *repository) update(ctx context.Context, name string, files map[string]objects.Object) error {
	m := r.model(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	changed, bytes, err := m.compare(files)
	if err != nil {
		return err
	}
	if changed == nil {
		m.fetched = time.Now()
		return nil
	}
	begin := time.Now()
	if free, err := r.room(r.staging); err == nil && bytes > free-free/spared {
		return fmt.Errorf("its changed files have %d bytes, and the folder for models has room for %d: name a larger file system with TMPDIR", bytes, free-free/spared)
	}
	stage, err := os.MkdirTemp(r.staging, "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage) // what it is now: a part of the new folder, or the old one
	dir := filepath.Join(r.dir, name)
	if err := r.stage(ctx, stage, dir, files, changed); err != nil {
		return err
	}
	if err := exchange(stage, dir); err != nil {
		return fmt.Errorf("cannot replace the folder of model %q: %w", name, err)
	}
	m.files, m.fetched = files, time.Now()
	r.log.Info("fetched model", "model", name, "repository", r.at.String(), "files", len(files), "changed", len(changed), "bytes", bytes, "duration", time.Since(begin))
	return nil
}

// compare returns the files to download, and their bytes. nil: the folder has exactly these files.
func (m *model) compare(files map[string]objects.Object) (changed map[string]objects.Object, bytes int64, err error) {
	changed = map[string]objects.Object{}
	for path, o := range files {
		switch {
		case o.Size < 0:
			return nil, 0, fmt.Errorf("object %q has a name that is no path, or no size: remove it from the repository", objects.Shorten(o.Key))
		case m.files[path] == o || strings.HasSuffix(path, "/") || path == "":
			continue
		}
		changed[path] = o
		if bytes += o.Size; bytes < 0 {
			return nil, 0, errors.New("its files have too many bytes together")
		}
	}
	if m.files != nil && len(changed) == 0 && len(m.files) == len(files) {
		return nil, 0, nil
	}
	return changed, bytes, nil
}

// stage fills a folder: with links to the files that have not changed, and with the objects that have.
func (r *repository) stage(ctx context.Context, stage, dir string, files, changed map[string]objects.Object) error {
	group, running := errgroup.WithContext(ctx)
	for path, o := range files {
		to := filepath.Join(stage, filepath.FromSlash(path))
		if strings.HasSuffix(path, "/") || path == "" {
			if err := os.MkdirAll(to, 0o700); err != nil {
				return errors.Join(err, group.Wait())
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return errors.Join(fmt.Errorf("object %q lies below another object: %w", objects.Shorten(o.Key), err), group.Wait())
		}
		if _, isChanged := changed[path]; !isChanged && os.Link(filepath.Join(dir, filepath.FromSlash(path)), to) == nil {
			continue
		}
		group.Go(func() error { return r.download(running, to, o) })
	}
	return group.Wait()
}

// download writes an object to a new file.
func (r *repository) download(ctx context.Context, to string, o objects.Object) error {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, objectTime+time.Duration(o.Size/slowest)*time.Second)
	defer cancel()
	from, err := r.store.Read(ctx, o)
	if err != nil {
		return fmt.Errorf("cannot read object %q of %s: %w", o.Key, r.at, err)
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("cannot store object %q: %w", o.Key, err)
	}
	n, err := io.Copy(f, io.LimitReader(from, o.Size+1))
	if err == nil && n != o.Size {
		err = fmt.Errorf("it has another size than its list says, %d bytes", o.Size)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("cannot read object %q of %s: %w", o.Key, r.at, err)
	}
	return nil
}
