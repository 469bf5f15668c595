// Package mirror keeps folders with the models of repositories that lie in the stores of clouds. The
// engine loads from these folders as from any repository.
//
// It stands between package objects and the engine as a program. A model's folder changes as a
// whole, or not at all: a download that fails leaves the one before. Only objects that have changed
// are downloaded. The folders go when the program ends.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tuner/engine/objects"
	"tuner/internal/durable"
)

const (
	// kind begins the names of the folders of all servers.
	kind = "tuner-repository-"
	// mostObjects bounds the objects of a repository, and so the memory of a list.
	mostObjects = 100_000
	// parallel is the number of objects of a repository that are downloaded at the same time.
	parallel = 8
	// listTime bounds the time of a list.
	listTime = 2 * time.Minute
	// namesTime bounds a list of the names of models, for which a client waits.
	namesTime = 5 * time.Second
	// namesAge is the time for which the names of models are not asked for again. Clients may ask for
	// the index as often as they like.
	namesAge = 2 * time.Second
)

// Repositories are the folders of all repositories in stores.
type Repositories struct {
	scratch *durable.Scratch
	all     []*repository
}

// repository is one of them.
type repository struct {
	at      objects.Location
	store   objects.Store
	dir     string // the models' folders
	staging string // on the same file system
	slots   chan struct{}
	room    func(dir string) (int64, error) // free bytes
	log     *slog.Logger

	looking sync.Mutex // for names
	looked  time.Time
	mu      sync.Mutex
	models  map[string]*model
}

// model has the objects that a folder of the repository holds.
type model struct {
	mu      sync.Mutex // held while the folder changes
	files   map[string]objects.Object
	fetched time.Time // when the folder was last brought up to date
}

// Open connects to the stores, and makes folders for the repositories that lie there. It returns the
// paths of all repositories, with those folders in place of addresses. There are no models yet, but
// their names can be listed: a bucket that cannot be read is an error. nil: all are folders already.
func Open(ctx context.Context, paths []string, getenv func(string) string, log *slog.Logger) (*Repositories, []string, error) {
	if !slices.ContainsFunc(paths, objects.IsRemote) {
		return nil, paths, nil
	}
	scratch, err := durable.NewScratch("", kind)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a folder for models from stores: %w", err)
	}
	r := &Repositories{scratch: scratch}
	paths = slices.Clone(paths)
	for i, path := range paths {
		if !objects.IsRemote(path) {
			continue
		}
		one, err := r.open(ctx, path, getenv, log)
		if err != nil {
			return nil, nil, errors.Join(err, r.Close())
		}
		paths[i] = one.dir
	}
	return r, paths, nil
}

func (r *Repositories) open(ctx context.Context, address string, getenv func(string) string, log *slog.Logger) (*repository, error) {
	at, err := objects.Parse(address)
	if err != nil {
		return nil, err
	}
	store, err := objects.Open(ctx, at, getenv)
	if err != nil {
		return nil, err
	}
	one, err := newRepository(at, store, filepath.Join(r.scratch.Dir, strconv.Itoa(len(r.all))), log)
	if err != nil {
		return nil, err
	}
	r.all = append(r.all, one)
	return one, one.names(ctx)
}

func newRepository(at objects.Location, store objects.Store, folder string, log *slog.Logger) (*repository, error) {
	r := &repository{at: at, store: store, dir: filepath.Join(folder, "models"), staging: filepath.Join(folder, "staging"),
		slots: make(chan struct{}, parallel), room: freeBytes, log: log, models: map[string]*model{}}
	for _, dir := range []string{r.dir, r.staging} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("cannot make a folder for models of %s: %w", at, err)
		}
	}
	return r, nil
}

// Close removes all folders. It may be called for nil.
func (r *Repositories) Close() error {
	if r == nil {
		return nil
	}
	return r.scratch.Close()
}

// FetchAll brings the folders of all models up to date, and removes those of models that are gone. If
// a repository cannot be listed, that is an error, and its folders stay as they are. If a model's
// objects cannot be fetched, the log says why, and its folder stays.
func (r *Repositories) FetchAll(ctx context.Context) error {
	if r == nil {
		return nil
	}
	for _, one := range r.all {
		if err := one.fetchAll(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Fetch brings the folder of a model up to date in each repository.
func (r *Repositories) Fetch(ctx context.Context, name string) error {
	for _, one := range r.all {
		if err := one.fetch(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Names makes an empty folder for each model that has none, and removes those of models that are
// gone. If a repository cannot be listed, the log says why, and its folders stay. What was listed in
// the last seconds is not asked for again.
func (r *Repositories) Names(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, namesTime)
	defer cancel()
	for _, one := range r.all {
		if err := one.names(ctx); err != nil {
			one.log.Error("cannot list a model repository, so the models of before are shown", "error", err)
		}
	}
}

func (r *repository) names(ctx context.Context) error {
	r.looking.Lock()
	defer r.looking.Unlock()
	if !r.looked.IsZero() && time.Since(r.looked) < namesAge {
		return nil
	}
	defer func() { r.looked = time.Now() }() // also a store that fails is not asked again at once
	found, begin := map[string]bool{}, time.Now()
	err := r.list(ctx, "", false, func(path string, o objects.Object) error {
		if name, isFolder := strings.CutSuffix(path, "/"); isFolder {
			found[name] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name := range found {
		if err := os.MkdirAll(filepath.Join(r.dir, name), 0o700); err != nil {
			return fmt.Errorf("cannot make a folder for model %q: %w", name, err)
		}
	}
	return r.keep(found, begin)
}

// keep removes the folders of all other models, except those that were fetched since the list began: it
// may not have them yet.
func (r *repository) keep(found map[string]bool, begin time.Time) error {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return fmt.Errorf("cannot read the folder for models of %s: %w", r.at, err)
	}
	for _, e := range entries {
		if found[e.Name()] {
			continue
		}
		m := r.model(e.Name())
		m.mu.Lock()
		if m.fetched.Before(begin) {
			m.files = nil
			err = errors.Join(err, os.RemoveAll(filepath.Join(r.dir, e.Name())))
		}
		m.mu.Unlock()
	}
	return err
}

func (r *repository) model(name string) *model {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.models[name]
	if m == nil {
		m = &model{}
		r.models[name] = m
	}
	return m
}

// list calls visit with the path of each object below a folder of the repository, which is "" or ends
// with a slash. Paths are relative to the repository.
func (r *repository) list(ctx context.Context, folder string, flat bool, visit func(path string, o objects.Object) error) error {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	n := 0
	for o, err := range r.store.List(ctx, r.at.Prefix+folder, flat) {
		if n++; err == nil && n > mostObjects {
			err = fmt.Errorf("it has more than %d objects", mostObjects)
		}
		if err != nil {
			return fmt.Errorf("cannot list %s: %w", r.at, err)
		}
		path, err := objects.Path(o.Key, r.at.Prefix)
		if err != nil {
			model := r.owner(o.Key)
			if model == "" {
				r.log.Warn("object ignored, since its name is no path", "repository", r.at.String(), "error", err)
				continue
			}
			path, o.Size = model+badName, -1
		}
		if err := visit(path, o); err != nil {
			return err
		}
	}
	return nil
}

// badName is the path within its model of an object whose name is no path. No other object has it. Its
// size is below zero.
const badName = "\x00"

// owner returns the path of the folder of the model to which an object with a bad name belongs. "": no
// model.
func (r *repository) owner(key string) string {
	rest, _ := strings.CutPrefix(key, r.at.Prefix)
	name, _, isBelow := strings.Cut(rest, "/")
	if _, err := objects.Path(name+"/", ""); err != nil || !isBelow {
		return ""
	}
	return name + "/"
}

func (r *repository) fetchAll(ctx context.Context) error {
	models := map[string]map[string]objects.Object{}
	found, begin := map[string]bool{}, time.Now()
	err := r.list(ctx, "", true, func(path string, o objects.Object) error {
		name, file, isBelow := strings.Cut(path, "/")
		if !isBelow {
			return nil // a file beside the models
		}
		if models[name] == nil {
			models[name] = map[string]objects.Object{}
		}
		found[name] = true
		models[name][file] = o
		return nil
	})
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for name, files := range models {
		group.Go(func() error {
			if err := r.update(ctx, name, files); err != nil {
				r.log.Error("cannot fetch a model, so its files stay as they are", "model", name, "error", err)
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are in the log
	return r.keep(found, begin)
}

// fetch brings one model's folder up to date.
func (r *repository) fetch(ctx context.Context, name string) error {
	if _, err := objects.Path(name+"/", ""); err != nil || strings.Contains(name, "/") {
		return nil // the engine refuses the name
	}
	files := map[string]objects.Object{}
	err := r.list(ctx, name+"/", true, func(path string, o objects.Object) error {
		_, file, _ := strings.Cut(path, "/")
		files[file] = o
		return nil
	})
	if err != nil {
		return err
	}
	if len(files) == 0 {
		m := r.model(name)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.files = nil
		return os.RemoveAll(filepath.Join(r.dir, name))
	}
	return r.update(ctx, name, files)
}
