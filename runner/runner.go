// Package runner measures one trial after the other on engine processes: it starts an engine for a pool of configurations,
// reconfigures it over the wire, puts the load on it, and makes windows out of what the clients, the server's statistics
// and the operating system say. Package profile hands it jobs and takes measurements.
//
// Whatever an engine does (not start, refuse a configuration, crash, hang, run out of memory) is a measurement with a
// failure; only the campaign's own faults are errors. The runner knows neither search nor candidates, judges no figure,
// and never leaves an engine behind.
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tuner/engine/api"
	"tuner/measure"
	"tuner/runner/load"
)

// Options say how to measure. Zero durations take the defaults.
type Options struct {
	Launcher Launcher
	Dial     Dial // GRPC or HTTP
	Wire     Wire // of loads
	Log      *slog.Logger

	Epoch    time.Time // the campaign's start, which windows count from
	Launches int       // engine launches of the campaign so far

	WarmUp   time.Duration // longest warm-up under load; default 5 s
	Load     time.Duration // how long loading a model may take, and the first answer of new sessions, to the ramp and to the load after it; default 2 min
	Patience time.Duration // how long an engine that has answered may complete no request; default 10 s, and at least 20 latencies

	// Reloads says that the server makes a model's sessions anew for every configuration, as a real Triton does. The bundled engine keeps them
	// where only the way changes in which requests are batched.
	Reloads bool

	// Available is the memory, in bytes, that further engines may have beside those that are up (Block); nil: as much as the system tells.
	Available func() int64

	Elsewhere bool   // the server runs on another machine
	Metrics   string // URL of the server's metrics page, for what this machine cannot see of it; "" for none
}

// The defaults of Options.
const (
	defaultWarmUp   = 5 * time.Second
	defaultLoad     = 2 * time.Minute
	defaultPatience = 10 * time.Second
)

// Job is all that one measurement needs.
type Job struct {
	Pool       string // jobs of the same pool, repository and library can share an engine process
	Repository string // folder of the model repository that holds the model
	Library    string // ONNX Runtime library
	Model      string // name of the model
	Config     string // complete model configuration as JSON, loaded instead of the repository's
	Instances  int    // instances of the model, ≥ 1
	MaxBatch   int    // largest batch of the configuration; 0 without batching
	Requests   Requests
	AnswerSize int64 // bytes of the outputs in an answer to one of them; 0 or less: not known

	Load    measure.Load
	Windows int                             // number of windows, ≥ 1
	Window  time.Duration                   // length of each, at least; made longer for slow models, up to three times (Turn: six), or as far as two latencies take
	Enough  func(soFar measure.Window) bool // whether what a window shows at measure.Look of it is enough: then it ends, and no other follows; nil: it never is
	Fresh   bool                            // on a process launched for this job
	Turn    bool                            // the windows take turns with other engines': they are short, and settle only where the sessions are new (type Turns)
	// Largest are the requests of a footprint: a fresh process executes one on every instance before the load. None is taken without requests, of a
	// service job, and of a server whose process is not known.
	Largest Batches
	// Curve makes it a service job: one window for each of these, at the load's concurrency, in place of Requests and Windows.
	Curve []Batches
	// CurveEnds says of the times that batches of a service job's first sizes took, in the job's order, that the others are left out. Nil: none is.
	CurveEnds func(batches []time.Duration) bool

	Memory      int64            // bytes that the engine is expected to need, as it did before; 0: unknown
	MemoryLimit int64            // bytes; an engine that exceeds it is stopped; 0: none
	Percentiles []measure.Metric // latency percentiles that matter: few requests for them are flagged
}

// Batches are the requests of a window of a service job.
type Batches struct {
	Size     int // client batch of each request, ≥ 1
	Requests Requests
}

// check says what makes the job senseless, which is never the engine's fault.
func (j Job) check() error {
	switch {
	case j.Load.Concurrency < 1 && !(j.Load.RequestRate > 0):
		return fmt.Errorf("cannot measure at %s: it is neither a concurrency nor a rate", j.Load)
	case j.Window <= 0 || j.Windows < 1 && len(j.Curve) == 0:
		return fmt.Errorf("cannot measure %d windows of %v", j.Windows, j.Window)
	case len(j.Requests) == 0 && len(j.Curve) == 0:
		return errors.New("cannot make a load of no requests")
	}
	for _, b := range j.Curve {
		if b.Size < 1 || len(b.Requests) == 0 {
			return fmt.Errorf("cannot make a load of %d requests of batch %d", len(b.Requests), b.Size)
		}
	}
	return nil
}

// Runner measures jobs, one at a time.
type Runner struct {
	options  Options
	count    *count
	pool     *pool // nil when no engine runs
	prepared prepared
	bench    []*Runner // of the further engines of a block, which count with this one; none before the first block
}

// count is what was counted so far.
type count struct {
	launches  int
	schedules uint64 // of open loops
}

// pool is a running engine with what is loaded in it.
type pool struct {
	job     Job // the one it was launched for
	launch  int // its ordinal, from 1
	engine  Engine
	control api.Client
	config  string        // loaded configuration; "" when none is
	ramped  int           // largest batch that its sessions have been given; 0 when none
	slowest time.Duration // answer that its sessions have given; 0 when none
	memory  int64         // bytes, the most that the metrics page told in the last load; 0 unknown
}

// slowestAnswers is how many times the slowest answer of a pool so far the first one to a further load may take, beyond the usual patience.
const slowestAnswers = 20

// first is how long the first answer to a load may take: of new sessions, which may build their kernels in it, as long as loading the model, and never
// longer than that.
func (p *pool) first(load time.Duration) time.Duration {
	return min(cmp.Or(slowestAnswers*p.slowest, load), load)
}

// New makes a runner without an engine.
func New(o Options) *Runner {
	o.WarmUp = cmp.Or(o.WarmUp, defaultWarmUp)
	o.Load = cmp.Or(o.Load, defaultLoad)
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	return &Runner{options: o, count: &count{launches: o.Launches}}
}

// Close stops the engines that run. The runner may be used again.
func (r *Runner) Close(ctx context.Context) {
	for _, s := range r.bench {
		s.shut(ctx)
	}
	r.shut(ctx)
}

// shut stops the runner's own engine, and none of the bench.
func (r *Runner) shut(ctx context.Context) {
	if r.pool == nil {
		return
	}
	_ = r.pool.control.Close() // the engine goes away anyhow
	r.pool.engine.Stop(ctx)
	r.pool = nil
}

// kill is shut for an engine that is not expected to end when it is asked.
func (r *Runner) kill(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	r.shut(ctx)
}

// Measure runs a job. The engine of the last job is kept if it is the right one, and so is one of the last block's; all others are stopped. An error
// means that the campaign cannot go on: the context ended (then the engine is stopped, with its own deadline), the job makes no sense, or no engine
// can be launched at all.
func (r *Runner) Measure(ctx context.Context, job Job) (measure.Measurement, error) {
	if err := job.check(); err != nil {
		return measure.Measurement{}, err
	}
	r.clear(ctx, job)
	return r.take(ctx, job)
}

// take measures a job, and leaves the bench alone.
func (r *Runner) take(ctx context.Context, job Job) (measure.Measurement, error) {
	r.resume()
	var m measure.Measurement
	windows, err := r.measure(ctx, job, &m)
	m.Launch = r.ordinal()
	if err == nil {
		if m.Failure = refusedAll(windows); m.Failure == nil {
			m.Windows = windows
		}
		return m, nil
	}
	m.Windows = windows // of the sizes of a service job that were measured before one failed
	if m.Failure, err = r.fail(ctx, err); err != nil {
		return measure.Measurement{}, err
	}
	return m, nil
}

// ordinal is that of the engine's launch, or of the last attempt at one.
func (r *Runner) ordinal() int {
	if r.pool == nil {
		return r.count.launches
	}
	return r.pool.launch
}

// Try has an engine load a job's configuration, the engine of the last job if it is the right one, and puts no load on it. The failure is
// the engine's, nil when it serves the configuration; errors are as Measure's.
func (r *Runner) Try(ctx context.Context, job Job) (*measure.Failure, error) {
	r.clear(ctx, job)
	r.resume()
	_, err := r.launch(ctx, job)
	if err == nil {
		err = r.configure(ctx, job)
	}
	if err == nil {
		return nil, nil
	}
	return r.fail(ctx, err)
}

// Server asks the engine of the last job what it says of itself.
func (r *Runner) Server(ctx context.Context) (api.ServerMetadata, error) {
	if r.pool == nil {
		return api.ServerMetadata{}, errors.New("cannot ask the server about itself: none runs")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.options.Patience, &overdueError{"asking the server about itself", r.options.Patience})
	defer cancel()
	m, err := r.pool.control.ServerMetadata(ctx)
	if err != nil {
		return m, causeOr(ctx, err)
	}
	return m, nil
}

// fail makes a failure of what ended a trial, and stops the engine unless it is as good as before; or it returns the error when it is the
// campaign's.
func (r *Runner) fail(ctx context.Context, err error) (*measure.Failure, error) {
	failure, err := r.explain(ctx, err)
	if err != nil {
		r.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	r.options.Log.Info("trial failed", "stage", failure.Stage, "reason", failure.Reason)
	switch failure.Stage {
	case measure.StageLoad: // the engine is as good as before
	case measure.StageHang, measure.StageMemory:
		r.kill(ctx)
	default:
		r.shut(ctx)
	}
	return failure, nil
}

// measure fills in the times and the memory, also when it fails, and returns the windows.
func (r *Runner) measure(ctx context.Context, job Job, m *measure.Measurement) ([]measure.Window, error) {
	begin := time.Now()
	launched, err := r.launch(ctx, job)
	if err != nil {
		m.Times.Launch = time.Since(begin)
		return nil, err
	}
	r.pool.memory = 0
	ctx, guard := watch(ctx, r.pool.engine, job.MemoryLimit)
	defer func() { m.Memory = max(guard.stop(), r.pool.memory) }()
	err = r.configure(ctx, job)
	if launched {
		m.Times.Launch = time.Since(begin)
	} else {
		m.Times.Reconfigure = time.Since(begin)
	}
	if err != nil {
		return nil, err
	}
	if len(job.Curve) > 0 {
		return r.curve(ctx, job, &m.Times, func() int64 { return max(guard.look(0), r.pool.memory) })
	}
	begin = time.Now()
	if launched {
		m.Footprint, err = r.footprint(ctx, job, guard)
	}
	executing := time.Since(begin)
	defer func() { m.Times.WarmUp += executing }()
	if err != nil {
		return nil, err
	}
	if job.Turn {
		return r.load(ctx, job, r.turn(job), m)
	}
	return r.load(ctx, job, r.settled(job), m)
}

// launch sees to it that the right engine runs, and reports whether it had to start one.
func (r *Runner) launch(ctx context.Context, job Job) (bool, error) {
	if r.pool != nil && !job.Fresh && r.pool.fits(job) {
		return false, nil
	}
	r.shut(ctx)
	r.count.launches++
	engine, err := r.options.Launcher.Launch(ctx, job.Repository, job.Library)
	if err != nil {
		return false, err
	}
	control, err := r.options.Dial(engine.Address())
	if err != nil {
		engine.Stop(context.WithoutCancel(ctx))
		return false, err
	}
	r.pool = &pool{job: job, launch: r.count.launches, engine: engine, control: control}
	r.options.Log.Debug("engine launched", "launch", r.pool.launch, "pid", engine.PID(), "pool", job.Pool)
	return true, nil
}

// fits reports whether a job can be measured in the pool's process.
func (p *pool) fits(job Job) bool {
	select {
	case <-p.engine.Done():
		return false
	default:
	}
	return p.job.Pool == job.Pool && p.job.Repository == job.Repository && p.job.Library == job.Library
}

// configure loads the job's configuration unless it is loaded.
func (r *Runner) configure(ctx context.Context, job Job) error {
	if r.pool.config == job.Config {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.options.Load, &overdueError{"loading the model", r.options.Load})
	defer cancel()
	if err := r.pool.control.LoadModel(ctx, job.Model, job.Config); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &loadError{err}
	}
	r.pool.config = job.Config
	if r.options.Reloads {
		r.pool.ramped, r.pool.slowest = 0, 0
	}
	return nil
}

// load puts the load on the engine, after the approach, and returns its windows. What they took, and whether they were cut, it notes in m.
func (r *Runner) load(ctx context.Context, job Job, a approach, m *measure.Measurement) ([]measure.Window, error) {
	begin := time.Now()
	if !r.prepared.isOf(job.Requests, r.pool.engine) {
		connections, err := r.options.Wire(r.pool.engine.Address(), job.Requests, job.AnswerSize)
		if err != nil {
			return nil, &requestError{err}
		}
		r.prepared = prepared{job.Requests, r.pool.engine, connections}
	}
	arrivals, err := r.arrivals(job.Load)
	if err != nil {
		return nil, &requestError{err}
	}
	seen := openEdges(ctx, r.pool, job.Model, r.options)
	defer seen.close()
	if err := seen.add(ctx); err != nil {
		return nil, err
	}
	result, err := load.Run(ctx, load.Options{
		Load: job.Load, Arrivals: arrivals, MaxInFlight: mostInFlight,
		Large: r.prepared.connections.IsLarge(),
		Dial: func(ctx context.Context, _ int) (load.Conn, error) {
			return r.prepared.connections.Dial(ctx, job.Load.Concurrency)
		},
		Ramp: a.ramp, WarmUp: a.warmUp, Fill: a.fill, WarmUpRequests: a.requests, Patience: r.options.Patience, First: r.pool.first(r.options.Load),
		More:   func(windows []measure.Window) bool { return len(windows) < job.Windows },
		Enough: job.Enough,
		Length: func(p99 time.Duration) time.Duration { return a.length(p99, seen.rampExecutions()) },
		Edge:   func(ctx context.Context, _ int) error { return seen.add(ctx) },
	})
	if err != nil {
		m.Times.WarmUp, m.Times.Windows = seen.split(begin, time.Now())
		return nil, err
	}
	last := result.Windows[len(result.Windows)-1]
	m.Times.WarmUp, m.Times.Windows = seen.split(begin, result.Begin.Add(last.Start+last.Duration))
	r.pool.ramped, r.pool.slowest, r.pool.memory = max(r.pool.ramped, a.ramped), max(r.pool.slowest, result.Slowest), seen.memory()
	m.Cut = result.Cut
	windows := seen.complete(result.Windows, result.Begin.Sub(r.options.Epoch))
	for i := range windows {
		windows[i].Turn = job.Turn
	}
	return flagFew(windows, job.Percentiles), nil
}

// mostInFlight bounds the connections of an open loop that the engine does not keep up with; what is due beyond it counts as failed.
const mostInFlight = 1024

// arrivals is the schedule of an open loop, that of independent users and another one for each load; nil for a closed loop.
func (r *Runner) arrivals(l measure.Load) (load.Arrivals, error) {
	if l.Concurrency > 0 {
		return nil, nil
	}
	r.count.schedules++
	return load.Poisson(l.RequestRate, r.count.schedules)
}
