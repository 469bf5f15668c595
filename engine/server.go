package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"tuner/engine/alarm"
	"tuner/engine/api"
	"tuner/engine/hostpolicy"
	"tuner/engine/scheduler"
	"tuner/internal/durable"
)

// Options say what a server serves. Backend and Log are required.
type Options struct {
	ID                  string // the server's name in its metadata
	Version             string
	Repositories        []string
	Explicit            bool     // models are loaded and unloaded by request only; otherwise all at start, and never again
	LoadModels          []string // with Explicit: what to load at start; "*" alone is all
	StrictReadiness     bool     // ready means that every model is
	ExitOnError         bool     // a model that fails at start is an error of LoadAll
	LoadThreads         int      // models that are loaded at the same time; 0: 1
	DisableAutoComplete bool
	DefaultMaxBatchSize int // of auto-completion; 0: modelconfig.DefaultMaxBatchSize
	GPUs                int // usable ones, numbered from 0
	HostPolicies        []hostpolicy.Policy
	Observe             func(model string, version int64) Observer // called when a version is loaded whose metrics begin at zero; nil: nobody asks
	Backend             Backend
	Timer               func(call func()) scheduler.Timer // of requests that wait for company; nil: one of package alarm
	Log                 *slog.Logger
}

// Server serves the models of its repositories. All methods are safe for concurrent use.
type Server struct {
	options  Options
	retiring sync.WaitGroup // models that are being drained and freed
	loading  sync.WaitGroup // loads
	ending   chan struct{}  // closed when no load begins any more; guarded by mu
	uploads  uploads

	mu       sync.RWMutex
	entries  map[string]*entry
	started  bool // the models of the start have been tried
	draining bool // no longer ready, but every request is still answered
	closing  bool
	sweepAt  int // number of entries at which those of models that are gone are looked for
}

// entry is what the server knows of a model that it was asked to load.
type entry struct {
	turn     chan struct{} // holds an element while a load or unload is in progress
	attempt  *attempt      // the load in progress; guarded by Server.mu, as all below
	versions map[int64]*version
	newest   *model  // the highest version that is ready; nil: none is
	source   *source // of the versions that serve
	hollow   bool    // the last load found no version to serve, and none serves
}

// version is the state of one version of a model.
type version struct {
	state  string
	reason string
	stamp  string // of its files
	model  *model // nil unless ready, or unloading
}

// unloadedReason marks versions that were unloaded on request; they don't make the server unready.
const unloadedReason = "unloaded"

// Open starts a server and loads the models that are to be served from the start.
func Open(ctx context.Context, o Options) (*Server, error) {
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	if err := s.LoadAll(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// New makes a server that has loaded nothing: it answers, but is not ready before LoadAll. The caller closes it. What servers that
// were killed have left in the folder for temporary files is removed.
func New(o Options) (*Server, error) {
	if o.Timer == nil {
		o.Timer = func(call func()) scheduler.Timer { return alarm.New(call) }
	}
	if len(o.Repositories) == 0 {
		return nil, errors.New("cannot serve: no model repository given: pass --model-repository")
	}
	for _, root := range o.Repositories {
		if _, err := os.Stat(root); err != nil {
			return nil, fmt.Errorf("creating server: Internal - failed to stat file %s", root)
		}
	}
	durable.SweepScratch(os.TempDir(), uploadsKind)
	return &Server{options: o, entries: map[string]*entry{}, ending: make(chan struct{}), sweepAt: fewEntries}, nil
}

// LoadAll loads the models that are to be served from the start. With ExitOnError a model that fails is an error; the
// others serve nevertheless. When ctx ends meanwhile, the error is that of ctx.
func (s *Server) LoadAll(ctx context.Context) error {
	names, err := s.startModels()
	if err != nil {
		return err
	}
	failed := make([]error, len(names))
	var group errgroup.Group
	group.SetLimit(max(1, s.options.LoadThreads))
	for i, name := range names {
		group.Go(func() error {
			failed[i] = s.load(ctx, name, Override{})
			if failed[i] != nil && ctx.Err() == nil {
				s.options.Log.Error("cannot load model", "model", name, "error", failed[i])
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are in failed
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("cannot load all models: %w", err)
	}
	if err := errors.Join(failed...); err != nil && s.options.ExitOnError {
		return fmt.Errorf("creating server: Internal - failed to load all models: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = true
	return nil
}

// startModels names the models to load at start.
func (s *Server) startModels() ([]string, error) {
	o := s.options
	all, err := listModels(o.Repositories)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		o.Log.Warn("the model repositories hold no model", "repositories", o.Repositories)
	}
	if !o.Explicit || len(o.LoadModels) == 1 && o.LoadModels[0] == "*" {
		return slices.Compact(all), nil
	}
	return o.LoadModels, nil
}

// Drain makes the server unready from now on, so that whoever balances load sends requests elsewhere; those that still come
// are answered. Loads are given up. Close follows.
func (s *Server) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	s.stopLoads()
}

// Close refuses new requests, answers those that were accepted, and frees all models. Loads are given up; see IsLoading. It may
// be called more than once.
func (s *Server) Close() {
	s.mu.Lock()
	s.closing = true
	s.stopLoads()
	for _, e := range s.entries {
		s.unload(e)
	}
	s.mu.Unlock()
	s.retiring.Wait()
	s.awaitLoads()
	s.uploads.close()
}

// retire frees a pool in the background once its last request is answered. Server.mu is held, and no new request can
// reach the pool.
func (s *Server) retire(p *pool, done func()) {
	s.retiring.Go(func() {
		if err := p.retire(); err != nil {
			s.options.Log.Error("cannot free a model", "error", err)
		}
		if done != nil {
			done()
		}
	})
}

// Start checks and queues a request. The caller waits for the Pending.
func (s *Server) Start(r *Request) (*Pending, error) {
	m, err := s.acquire(r.Model, r.Version)
	if err != nil {
		return nil, err
	}
	return m.start(r)
}

// Infer runs a request and blocks until it is answered. The caller releases the Response.
func (s *Server) Infer(ctx context.Context, r *Request) (*Response, error) {
	p, err := s.Start(r)
	if err != nil {
		return nil, err
	}
	return p.Wait(ctx)
}

// acquire finds a model and enters its pool, so that it is not freed before the request has been answered.
func (s *Server) acquire(name string, version int64) (*model, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	m, err := s.find(name, version)
	if err == nil {
		m.pool.users.Add(1)
	}
	return m, err
}

// find returns a ready model; version 0 is the newest. Server.mu is held.
func (s *Server) find(name string, number int64) (*model, error) {
	if s.closing {
		return nil, Errorf(Unavailable, "Server is stopping, scheduler for model has stopped accepting new inference requests")
	}
	e := s.entries[name]
	switch {
	case e == nil:
		return nil, Errorf(NotFound, "Request for unknown model: '%s' is not found", name)
	case number == 0:
		if e.newest != nil {
			return e.newest, nil
		}
		return nil, Errorf(NotFound, "Request for unknown model: '%s' has no available versions", name)
	}
	v := e.versions[number]
	switch {
	case v == nil:
		return nil, Errorf(NotFound, "Request for unknown model: '%s' version %d is not found", name, number)
	case v.state != api.StateReady:
		return nil, Errorf(Unavailable, "Request for unknown model: '%s' version %d is not at ready state", name, number)
	}
	return v.model, nil
}

// findNewest notes which version is the highest that is ready: each request asks for it. Server.mu is held.
func (e *entry) findNewest() {
	e.newest = nil
	for number, v := range e.versions {
		if v.state == api.StateReady && (e.newest == nil || number > e.newest.version) {
			e.newest = v.model
		}
	}
}
