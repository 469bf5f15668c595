package target

import (
	"context"
	"errors"
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

// Remote is a server that runs already, in explicit model control mode, and that other people use.
// It touches only one model. A launch is the next load of that model, after it was unloaded. The
// runner's Dial must be Remote.Dial, since the model's files may have to travel with a load. Remote
// is for one goroutine, except for the clients that Dial makes.
type Remote struct {
	At      api.Announcement
	Connect runner.Dial // opens a client of it
	Model   string      // the name of the model
	// Sends reports whether the files of the model, in a repository folder of this machine, travel
	// with each load. Otherwise the server has them.
	Sends func(repository string) bool
	// Place is the path of the server's model repository on this machine, or "". With a Place,
	// files are copied to it instead of sent.
	Place string

	repository string // of the last launch
	isAsked    bool   // the server was asked to load or unload the model; it may have, whatever it answered
	isTouched  bool   // it did so, and said so
}

// RemoteState is a server's state of a model before a campaign.
type RemoteState struct {
	Server api.ServerMetadata
	Known  bool                // the model is in a repository of the server
	Config *modelconfig.Config // configuration of the loaded model; nil if it was not loaded
}

const (
	// enough for a server that first answers the requests it has accepted
	unloadTime  = 30 * time.Second
	unloadEvery = 50 * time.Millisecond
	hurriedTime = 2 * time.Second // for requests that must be made although the context has ended
)

// Inspect asks for the server's state of the model. It fails if the server does not answer as
// expected.
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

// Restore restores the server's state. It loads the model again if the model was loaded, unloads it
// if it was not, and removes copied files.
func (r *Remote) Restore(ctx context.Context, s RemoteState) error {
	var failed error
	if r.repository != "" && r.places(r.repository) {
		failed = modelrepo.Remove(r.Place, r.Model)
	}
	switch {
	case !r.isAsked:
	case s.Config == nil:
		failed = errors.Join(failed, r.unloadAgain(ctx))
	case failed == nil && (r.isTouched || !r.serves(ctx, s.Config)):
		failed = r.reload(ctx, s.Config)
	}
	if failed != nil {
		return fmt.Errorf("cannot leave model %q of the server at %s as it was: %w", r.Model, r.where(), failed)
	}
	return nil
}

// serves reports whether the server says that it serves the model with that configuration.
func (r *Remote) serves(ctx context.Context, was *modelconfig.Config) bool {
	now, err := r.Inspect(ctx)
	return err == nil && now.Config != nil && modelconfig.Equal(was, now.Config)
}

// reload loads the model from the server's repository. If its configuration then differs from the
// one before, reload loads the model again with that one.
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

// unloadAgain unloads the model if the end of the last visit did not.
func (r *Remote) unloadAgain(ctx context.Context) error {
	client, err := r.Connect(r.At)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // nothing is to come any more
	if isThere, err := r.isThere(ctx, client); err != nil || !isThere {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, unloadTime)
	defer cancel()
	return r.unload(ctx, client)
}

func (r *Remote) where() string {
	if r.At.GRPC != "" {
		return r.At.GRPC
	}
	return r.At.HTTP
}

// places reports whether the files of a repository folder are copied to the server's.
func (r *Remote) places(repository string) bool { return r.Place != "" && r.Sends(repository) }

// Launch checks that the server answers. A server that does not answer ends the campaign, since it
// is not a result of a trial. The server has its own ONNX Runtime and ignores the library.
func (r *Remote) Launch(ctx context.Context, s runner.Server) (runner.Engine, error) {
	if len(s.Policies) > 0 {
		return nil, fmt.Errorf("cannot give models of the server at %s cores of their own: host policies are options of its start; search with isolation: [shared]", r.where())
	}
	repository := s.Repository
	client, err := r.Connect(r.At)
	if err != nil {
		return nil, err
	}
	if _, err = client.ServerMetadata(ctx); err == nil && r.places(repository) {
		err = modelrepo.Copy(r.Place, modelrepo.Variant{Dir: repository, Model: r.Model})
	}
	if err != nil {
		_ = client.Close() // the first error matters more
		return nil, fmt.Errorf("cannot use the server at %s: %w; repair it, and run the same command again to resume", r.where(), err)
	}
	r.repository = repository
	return &visit{remote: r, client: client, done: make(chan struct{})}, nil
}

// Dial makes a client whose loads send the files that the server does not have.
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

// LoadModel loads the model with the configuration. If the server needs them, it also sends the
// files of the last launch's repository.
func (s sender) LoadModel(ctx context.Context, model, config string, files ...api.File) error {
	r := s.remote
	if r.Sends(r.repository) && r.Place == "" {
		own, err := modelFiles(filepath.Join(r.repository, model))
		if err != nil {
			return err
		}
		files = append(slices.Clone(files), own...)
	}
	r.isAsked = true
	err := s.Client.LoadModel(ctx, model, config, files...)
	r.isTouched = r.isTouched || err == nil
	return err
}

// modelFiles reads the files of a model's folder, except its configuration.
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

// Stop unloads the model and waits until the server has done so. It gives up if the server does not
// answer.
func (v *visit) Stop(ctx context.Context) {
	v.end.Do(func() {
		limit := unloadTime
		if ctx.Err() != nil {
			ctx, limit = context.WithoutCancel(ctx), hurriedTime
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		_ = v.remote.unload(ctx, v.client) // Restore tries again, and tells
		_ = v.client.Close()               // nothing is to come any more
		close(v.done)
	})
}

// unload unloads the model and waits until the index does not show it any more. The request to unload
// returns earlier.
func (r *Remote) unload(ctx context.Context, client api.Client) error {
	r.isAsked = true
	if err := client.UnloadModel(ctx, r.Model); err != nil {
		return err
	}
	r.isTouched = true
	for {
		if isThere, err := r.isThere(ctx, client); err != nil || !isThere {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(unloadEvery):
		}
	}
}

// isThere reports whether the index shows a version of the model in the server's memory.
func (r *Remote) isThere(ctx context.Context, client api.Client) (bool, error) {
	index, err := client.Index(ctx)
	return slices.ContainsFunc(index, func(e api.IndexEntry) bool {
		return e.Name == r.Model && slices.Contains([]string{api.StateReady, api.StateLoading, api.StateUnloading}, e.State)
	}), err
}
