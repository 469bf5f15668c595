package target

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"tuner/engine/api"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/runner"
)

// Remote is a server that runs already, in explicit model control, and that other people use. It
// touches one model only. A launch is the next load of that model, after it was unloaded. The
// runner's Dial must be Remote's own, since the model's files may have to travel with a load.
// Remote is for one goroutine, but for the clients that Dial makes.
type Remote struct {
	At      api.Announcement
	Connect runner.Dial // how it is reached
	Model   string      // the name of the model
	// Sends reports whether the files of the model in a repository folder of this machine travel
	// with each load; else the server has them.
	Sends func(repository string) bool
	// Place, where it is not "", is the server's model repository as this machine sees it: files
	// that would travel are put there.
	Place string

	repository string // of the last launch
	isTouched  bool   // the model was loaded or unloaded
}

// RemoteState is what a server had of a model before a campaign.
type RemoteState struct {
	Server api.ServerMetadata
	Known  bool                // it is in a repository of the server
	Config *modelconfig.Config // what it was serving the model with; nil when it was not loaded
}

const (
	unloadTime  = 30 * time.Second // a server that answers what it has accepted first
	unloadEvery = 50 * time.Millisecond
	hurriedTime = 2 * time.Second // of what must be done although the context has ended
)

// Inspect asks what the server has of the model. The error says that it does not answer as asked.
func (r *Remote) Inspect(ctx context.Context) (RemoteState, error) {
	var s RemoteState
	client, err := r.Connect(r.At)
	if err != nil {
		return s, err
	}
	defer func() { _ = client.Close() }() // nothing is to come any more
	if s.Server, err = client.ServerMetadata(ctx); err != nil {
		return s, err
	}
	index, err := client.Index(ctx)
	if err != nil {
		return s, err
	}
	for _, entry := range index {
		if entry.Name != r.Model {
			continue
		}
		s.Known = true
		if entry.State == api.StateReady {
			s.Config, err = client.ModelConfig(ctx, r.Model)
		}
	}
	return s, err
}

// Restore leaves the server as it was: it loads the model again if the model was loaded, and
// removes files that were placed.
func (r *Remote) Restore(ctx context.Context, s RemoteState) error {
	var failed error
	if r.repository != "" && r.places(r.repository) {
		failed = modelrepo.Remove(r.Place, r.Model)
	}
	if failed == nil && s.Config != nil && r.isTouched {
		failed = r.reload(ctx, s.Config)
	}
	if failed != nil {
		return fmt.Errorf("cannot leave model %q of the server at %s as it was: %w", r.Model, r.where(), failed)
	}
	return nil
}

// reload loads the model from the server's repository. If that yields another configuration than
// before, it loads the model once more with the earlier one.
func (r *Remote) reload(ctx context.Context, was *modelconfig.Config) error {
	client, err := r.Connect(r.At)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // nothing is to come any more
	if err := client.LoadModel(ctx, r.Model, ""); err != nil {
		return err
	}
	config, err := client.ModelConfig(ctx, r.Model)
	if err != nil || modelconfig.Equal(was, config) {
		return err
	}
	text, err := modelconfig.FormatJSON(was)
	if err != nil {
		return err
	}
	return client.LoadModel(ctx, r.Model, string(text))
}

func (r *Remote) where() string {
	if r.At.GRPC != "" {
		return r.At.GRPC
	}
	return r.At.HTTP
}

// places reports whether the files of a repository folder are put into the server's.
func (r *Remote) places(repository string) bool { return r.Place != "" && r.Sends(repository) }

// Launch makes sure that the server answers. A server that does not answer ends the campaign: it is
// no result of a trial. The server has its own ONNX Runtime and ignores the library.
func (r *Remote) Launch(ctx context.Context, repository, _ string) (runner.Engine, error) {
	client, err := r.Connect(r.At)
	if err != nil {
		return nil, err
	}
	if _, err = client.ServerMetadata(ctx); err == nil && r.places(repository) {
		err = modelrepo.Copy(r.Place, modelrepo.Variant{Dir: repository, Model: r.Model})
	}
	if err != nil {
		_ = client.Close() // the error before tells more
		return nil, fmt.Errorf("cannot use the server at %s: %w; run the same command again to go on when it is as it should be", r.where(), err)
	}
	r.repository = repository
	return &visit{remote: r, client: client, done: make(chan struct{})}, nil
}

// Dial makes a client whose loads bring the files that the server does not have.
func (r *Remote) Dial(at api.Announcement) (api.Client, error) {
	client, err := r.Connect(at)
	if err != nil {
		return nil, err
	}
	return sender{client, r}, nil
}

// sender is a client that sends the model's files with its configuration.
type sender struct {
	api.Client
	remote *Remote
}

// LoadModel loads the model with the configuration and, where the server needs them, with the files
// of the last launch's repository.
func (s sender) LoadModel(ctx context.Context, model, config string, files ...api.File) error {
	r := s.remote
	if r.Sends(r.repository) && r.Place == "" {
		own, err := modelFiles(filepath.Join(r.repository, model))
		if err != nil {
			return err
		}
		files = append(slices.Clone(files), own...)
	}
	err := s.Client.LoadModel(ctx, model, config, files...)
	r.isTouched = r.isTouched || err == nil
	return err
}

// modelFiles reads the files of a model's folder, but for its configuration.
func modelFiles(folder string) ([]api.File, error) {
	var files []api.File
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(folder, path)
		if err != nil || rel == "config.pbtxt" {
			return err
		}
		data, err := os.ReadFile(path)
		files = append(files, api.File{Path: filepath.ToSlash(rel), Data: data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the files of the model: %w", err)
	}
	return files, nil
}

// visit is the server while it serves the model for a pool.
type visit struct {
	remote *Remote
	client api.Client
	done   chan struct{}
	end    sync.Once
}

func (v *visit) Address() api.Announcement { return v.remote.At }
func (v *visit) PID() int                  { return 0 }
func (v *visit) Done() <-chan struct{}     { return v.done }
func (v *visit) Exit() runner.Exit         { return runner.Exit{Text: "the model was unloaded"} }
func (v *visit) LastWords() string         { return "" }

// Stop unloads the model, and waits until the server has done so. A server that does not answer any
// more is left alone.
func (v *visit) Stop(ctx context.Context) {
	v.end.Do(func() {
		limit := unloadTime
		if ctx.Err() != nil {
			ctx, limit = context.WithoutCancel(ctx), hurriedTime
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if v.client.UnloadModel(ctx, v.remote.Model) == nil {
			v.remote.isTouched = true
			v.awaitUnloaded(ctx)
		}
		_ = v.client.Close() // nothing is to come any more
		close(v.done)
	})
}

// awaitUnloaded waits until the index shows no version of the model that serves or is about to end:
// the request to unload returns earlier.
func (v *visit) awaitUnloaded(ctx context.Context) {
	isThere := func(e api.IndexEntry) bool {
		return e.Name == v.remote.Model && (e.State == api.StateReady || e.State == api.StateUnloading)
	}
	for {
		index, err := v.client.Index(ctx)
		if err != nil || !slices.ContainsFunc(index, isThere) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(unloadEvery):
		}
	}
}
