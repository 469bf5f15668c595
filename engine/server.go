package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"tuner/engine/alarm"
	"tuner/engine/api"
	"tuner/engine/cache"
	"tuner/engine/ensemble"
	"tuner/engine/fault"
	"tuner/engine/hostpolicy"
	"tuner/engine/ratelimit"
	"tuner/engine/repository"
	"tuner/engine/scheduler"
	"tuner/engine/served"
	"tuner/engine/statistics"
	"tuner/engine/trace"
	"tuner/model/modelconfig"
)

// Options describe a server. Backend and Log are required.
type Options struct {
	ID           string // the server's name in its metadata
	Version      string
	Repositories []string
	// a name may stand for one model in each repository; see Server.identity
	Namespacing bool
	ConfigName  string // configs/NAME.pbtxt has precedence over config.pbtxt; "": it has not
	LoadRetries int    // how often a version that fails to load is tried again
	Remote      Remote // of repositories elsewhere, with Explicit; nil: all are here
	// models are loaded and unloaded only by request; otherwise all are loaded at the start
	Explicit            bool
	LoadModels          []string // with Explicit: models to load at the start; "*" alone means all
	StrictReadiness     bool     // the server is ready only if every model is
	ExitOnError         bool     // a missing repository is an error of New, and a model that fails at the start of LoadAll
	LoadThreads         int      // models that are loaded at the same time; 0: 1
	DisableAutoComplete bool
	DefaultMaxBatchSize int // of auto-completion; 0: modelconfig.DefaultMaxBatchSize
	// bytes of the response cache, for models whose configuration enables it; 0: no cache
	ResponseCache int64
	SharedMemory  bool               // the front ends have regions of it, as the metadata says
	GPUs          int                // number of usable GPUs, numbered from 0
	Limiter       *ratelimit.Limiter // of executions; nil: an instance that is idle executes
	// requests that a model's batcher waits for before its first batch; 0: none. Triton's tests set it
	// to know what a batch will hold.
	Hold         int
	HoldBacklog  int // the same for the backlog of sequences; the first batch waits for both
	HostPolicies []hostpolicy.Policy
	// called when a version is loaded whose metrics begin at zero; nil: not called
	Observe func(namespace, model string, version int64, c *modelconfig.Config) statistics.Observer
	Tracer  *trace.Tracer // of requests; nil: its settings cannot be turned on
	Backend Backend
	// timer for requests that wait for others; nil: one of package alarm
	Timer func(call func()) scheduler.Timer
	Log   *slog.Logger
}

// Server serves the models of its repositories. All methods are safe for concurrent use.
type Server struct {
	options  Options
	retiring sync.WaitGroup // models that are being drained and freed
	loading  sync.WaitGroup // loads
	ending   chan struct{}  // closed when no load may begin any more; guarded by mu
	uploads  repository.Uploads
	cache    *served.Cache // nil: none
	roots    atomic.Pointer[repository.Roots]
	register sync.Mutex // held while roots are exchanged
	// identities of folders that were ignored because of their names: the log says so once
	unreadable sync.Map

	mu        sync.RWMutex
	entries   map[string]*entry
	started   bool // loading of the models of the start has been tried
	draining  bool // no longer ready, but every request is still answered
	closing   bool
	ensembles ensemble.Catalog
	sweepAt   int // number of entries at which sweep runs next
}

// entry is the server's state of a model that it was asked to load.
type entry struct {
	turn     chan struct{} // holds an element while a load or unload is in progress
	attempt  *attempt      // the load in progress; guarded by Server.mu, as all below
	versions map[int64]*version
	newest   *served.Model // the highest ready version; nil: none
	source   *source       // of the serving versions
	hollow   bool          // the last load found no version to serve, and none serves
	dropped  bool          // it left service because its models did, and not by request
}

// version is the state of one version of a model.
type version struct {
	state  string
	reason string
	stamp  string        // of its files
	model  *served.Model // nil unless ready, or unloading
}

// unloadedReason marks versions that were unloaded on request. They do not make the server unready.
const unloadedReason = "unloaded"

// Open starts a server and loads the models that it serves from the start.
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

// MissingRepositoryError means that a model repository cannot be opened. The text is Triton's.
type MissingRepositoryError struct{ Path string }

func (e *MissingRepositoryError) Error() string {
	return "creating server: Internal - failed to stat file " + e.Path
}

// New makes a server that has loaded nothing. It answers, but is not ready before LoadAll. The
// caller closes it. Where a repository is missing and errors do not end it, it has no models, and is
// neither live nor ready, as in Triton. New removes files that killed servers have left in the
// folder for temporary files.
func New(o Options) (*Server, error) {
	if o.Timer == nil {
		o.Timer = func(call func()) scheduler.Timer { return alarm.New(call) }
	}
	if len(o.Repositories) == 0 {
		return nil, errors.New("cannot serve: no model repository given: pass --model-repository")
	}
	if absent := missing(o.Repositories); absent != nil {
		if o.ExitOnError {
			return nil, absent
		}
		o.Log.Error(absent.Error())
		o.Repositories = nil
	}
	if o.Tracer == nil {
		o.Tracer = trace.New(trace.Default(), nil, o.Log)
	}
	o.Repositories = distinct(o.Repositories)
	repository.SweepUploads()
	s := &Server{options: o, entries: map[string]*entry{}, ending: make(chan struct{}), sweepAt: fewEntries}
	s.roots.Store(&repository.Roots{Paths: o.Repositories})
	if o.ResponseCache > 0 {
		s.cache = cache.New[[]Tensor](o.ResponseCache)
	}
	return s, nil
}

// missing returns an error for the first repository that does not exist. nil: all do.
func missing(paths []string) error {
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			return &MissingRepositoryError{path}
		}
	}
	return nil
}

// distinct leaves out what is there already. As in Triton, a repository that is given twice is one.
func distinct(paths []string) (once []string) {
	for _, path := range paths {
		if !slices.Contains(once, path) {
			once = append(once, path)
		}
	}
	return once
}

// LoadAll loads the models that the server serves from the start. With ExitOnError a model that
// fails is an error, but the others serve. If ctx ends meanwhile, the error is that of ctx.
func (s *Server) LoadAll(ctx context.Context) error {
	if !s.Live() {
		return nil
	}
	s.listRemote(ctx)
	names, err := s.startModels()
	if err != nil {
		return err
	}
	failed, _ := s.loadAll(ctx, names, nil)
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		if ctx.Err() == nil {
			s.options.Log.Error("cannot load model", "model", name, "error", failed[name])
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("cannot load all models: %w", err)
	}
	if err := errors.Join(slices.Collect(maps.Values(failed))...); err != nil && s.options.ExitOnError {
		return fmt.Errorf("creating server: Internal - failed to load all models: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = true
	return nil
}

// startModels returns the names of the models to load at the start.
func (s *Server) startModels() ([]string, error) {
	o := s.options
	all, err := s.list()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		o.Log.Warn("the model repositories hold no model", "repositories", o.Repositories)
	}
	if !o.Explicit || len(o.LoadModels) == 1 && o.LoadModels[0] == "*" {
		return slices.Compact(all), nil
	}
	var ids []string
	for _, name := range o.LoadModels {
		ids = append(ids, s.identities(name, Override{})...)
	}
	return ids, nil
}

// Tracer returns what traces requests. Front ends ask it before they begin a request.
func (s *Server) Tracer() *trace.Tracer { return s.options.Tracer }

// Drain makes the server unready from now on, so that load balancers send requests elsewhere.
// Requests that still arrive are answered. Loads are given up. Close comes after it.
func (s *Server) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	s.stopLoads()
}

// Close refuses new requests, answers the accepted ones, and frees all models. Loads are given up;
// see IsLoading. It may be called more than once.
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
	s.uploads.Close()
}

// retire frees a pool in the background once its last request is answered. The caller holds
// Server.mu. No new request may reach the pool.
func (s *Server) retire(p *served.Pool, done func()) {
	s.retiring.Go(func() {
		if err := p.Retire(); err != nil {
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
	return m.Start(r, nil)
}

// Infer runs a request and blocks until it is answered. The caller releases the Response.
func (s *Server) Infer(ctx context.Context, r *Request) (*Response, error) {
	p, err := s.Start(r)
	if err != nil {
		return nil, err
	}
	return p.Wait(ctx)
}

// acquire finds a model and enters its pool, so that it is not freed before the request has been
// answered.
func (s *Server) acquire(name string, version int64) (*served.Model, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	m, err := s.find(name, version)
	if err == nil {
		m.Pool.Enter()
	}
	return m, err
}

// find returns a ready model. Version 0 is the newest. The caller holds Server.mu.
func (s *Server) find(name string, number int64) (*served.Model, error) {
	if s.closing {
		return nil, fault.Errorf(fault.Unavailable, "Server is stopping, scheduler for model has stopped accepting new inference requests")
	}
	id, e, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	return e.find(id, number)
}

// find returns a ready version of a model that is known by id. The caller holds Server.mu.
func (e *entry) find(id string, number int64) (*served.Model, error) {
	if number == 0 {
		if e.newest != nil {
			return e.newest, nil
		}
		return nil, fault.Errorf(fault.NotFound, "Request for unknown model: '%s' has no available versions", id)
	}
	v := e.versions[number]
	switch {
	case v == nil:
		return nil, fault.Errorf(fault.NotFound, "Request for unknown model: '%s' version %d is not found", id, number)
	case v.state != api.StateReady:
		return nil, fault.Errorf(fault.Unavailable, "Request for unknown model: '%s' version %d is not at ready state", id, number)
	}
	return v.model, nil
}

// findNewest stores the highest ready version, since each request needs it. The caller holds
// Server.mu.
func (e *entry) findNewest() {
	e.newest = nil
	for number, v := range e.versions {
		if v.state == api.StateReady && (e.newest == nil || number > e.newest.Version) {
			e.newest = v.model
		}
	}
}
