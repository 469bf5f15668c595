// Package runner measures trials one after the other on engine processes. It starts an engine for a
// pool of configurations, reconfigures it over the wire, and puts the load on it. The windows hold
// the figures of the clients, the server's statistics and the operating system. Package profile
// passes jobs to it and gets measurements.
//
// An engine may refuse to start, refuse a configuration, crash, hang, or run out of memory. Each of
// these is a measurement with a failure. Only faults of the campaign itself are errors. The runner
// knows neither search nor candidates, and judges no figure. It always stops its engines.
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"tuner/engine/api"
	"tuner/measure"
	"tuner/measure/arrivals"
	"tuner/model/isolation"
)

// Options describe how to measure. Zero durations take the defaults.
type Options struct {
	Launcher Launcher
	Dial     Dial // GRPC or HTTP
	Wire     Wire // wire of loads
	Log      *slog.Logger

	Epoch    time.Time // start of the campaign; Start of a window counts from it
	Launches int       // engine launches of the campaign so far

	WarmUp time.Duration // longest warm-up under load; default 5 s
	// limit for loading a model, and for the first answer of new sessions to the ramp and to the
	// load after it; default 2 min
	LoadTimeout time.Duration
	// time without a completed request after which an engine that has answered counts as hung;
	// default 10 s, and at least 20 latencies
	Patience time.Duration

	// Reloads is true if the server makes a model's sessions again for every configuration, as a
	// real Triton does. The bundled engine keeps them if only the batching of requests changes.
	Reloads bool

	// Available returns the memory in bytes for further engines beside those that are up (Block).
	// nil: all the memory that the system reports.
	Available func() int64

	// Group is the memory in bytes that the control group of this program and its engines allows. An
	// engine may hold EngineShare of it. 0: no limit.
	Group int64
	// Refuses is true if the kernel refuses an engine more than that share, so that an allocation fails.
	Refuses bool

	Elsewhere bool // the server runs on another machine
	// URL of the server's metrics page, for figures that this machine cannot read; "" for none
	Metrics string
}

// The defaults of Options.
const (
	defaultWarmUp      = 5 * time.Second
	defaultLoadTimeout = 2 * time.Minute
	defaultPatience    = 10 * time.Second
)

// Job describes one measurement.
type Job struct {
	Pool       string             // jobs of the same pool, repository and library can share an engine process
	Repository string             // folder of the model repository that holds the model
	Library    string             // ONNX Runtime library
	Policies   []isolation.Policy // of the server: jobs with others need another process
	Model      string             // name of the model
	Config     string             // complete model configuration as JSON, used instead of the repository's
	Instances  int                // instances of the model, ≥ 1
	MaxBatch   int                // largest batch of the configuration; 0 without batching
	Requests   Requests
	Order      []int // requests at the instants of a trace; nil: Requests in turn
	AnswerSize int64 // bytes of the outputs in an answer to one request; 0 or less: unknown

	Load     measure.Load
	Arrivals arrivals.Pattern // course of a request rate
	Windows  int              // number of windows, ≥ 1
	// least length of each; slow models get up to three times as much (Turn: six), or two latencies
	Window time.Duration
	// called once per window, after its first measure.Look share; if it returns true, the window
	// ends there and is the last; nil: never
	Enough func(soFar measure.Window) bool
	Fresh  bool // on a process launched for this job
	// the windows take turns with windows of other engines: they are short, and settle only where
	// the sessions are new (type Turns)
	Turn bool
	// Windows in which nothing was answered are no failure of a closed loop: the caller has, or takes,
	// others.
	MayBeEmpty bool
	// Largest are the requests of a footprint: a fresh process executes one on every instance
	// before the load. Without Largest there is no footprint. Service jobs and servers with an
	// unknown process have none either.
	Largest Batches
	// ServiceCurve makes it a service job: one window per batch size, at the load's concurrency, in
	// place of Requests and Windows.
	ServiceCurve []Batches
	// ServiceCurveEnds gets the times of the batches of a service job's first sizes, in the job's
	// order. If it returns true, the other sizes are left out. nil: none is.
	ServiceCurveEnds func(batches []time.Duration) bool

	// expected memory of the engine in bytes, from earlier measurements; 0: unknown
	Memory      int64
	MemoryLimit int64 // bytes; an engine that uses more than twice as much is stopped; 0: no limit
	// latency percentiles for which windows with too few requests are flagged
	Percentiles []measure.Metric

	// Parts are the jobs of several models, which one process serves from one repository, and whose
	// loads run together. They have what belongs to a model: Model, Config, Instances, MaxBatch,
	// Requests, Order, AnswerSize, Load of this model alone, Arrivals, Enough, Largest and Percentiles.
	// The job itself has the rest, and the load of all, of which the measurement has the scale. The windows of the measurement have the names of their models. Those
	// between two edges stand together, in the order of the parts. They end where one part has enough.
	// Empty: one model, whose fields are the job's own.
	Parts []Job

	// Stages are the models that the job's model calls: it is an ensemble, or has business logic that
	// calls models. They have Model, Config, Instances and MaxBatch, and get no requests but the model's.
	// Windows have their statistics. Empty: the model calls none.
	Stages []Job
}

// Batches are the requests of a window of a service job.
type Batches struct {
	Size     int // client batch of each request, ≥ 1
	Requests Requests
}

// check returns an error for a contradictory job. The engine is never the cause.
func (j Job) check() error {
	if err := j.checkParts(); err != nil {
		return err
	}
	if j.Window <= 0 || j.Windows < 1 && len(j.ServiceCurve) == 0 {
		return fmt.Errorf("cannot measure %d windows of %v", j.Windows, j.Window)
	}
	for _, b := range j.ServiceCurve {
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
	pool     *pool               // nil if no engine runs
	prepared map[string]prepared // by model
	// runners of the further engines of a block, which share the counts; empty before the first
	// block
	bench []*Runner
}

// count holds what is counted over the whole campaign.
type count struct {
	launches int
}

// pool is a running engine, with the state of its sessions.
type pool struct {
	job     Job // the job for which it was launched
	launch  int // its ordinal, from 1
	engine  Engine
	control api.Client
	models  map[string]loaded
	slowest time.Duration // slowest answer of its sessions; 0: none
	// bytes, the largest value on the metrics page during the last load; 0: unknown
	memory    int64
	schedules uint32 // schedules of open loops that were made for it
}

// loaded is the state of a model in a pool.
type loaded struct {
	config string // its configuration; "": none
	ramped int    // largest batch that its sessions have executed; 0: none
}

// slowestAnswers bounds the first answer to a further load, as a multiple of the pool's slowest
// answer so far. It comes on top of the usual patience.
const slowestAnswers = 20

// first returns the limit for the first answer to a load. New sessions may build their kernels in
// it, so they get as long as loading the model. The limit is never longer than that.
func (p *pool) first(load time.Duration) time.Duration {
	return min(cmp.Or(slowestAnswers*p.slowest, load), load)
}

// New makes a runner without an engine.
func New(o Options) *Runner {
	o.WarmUp = cmp.Or(o.WarmUp, defaultWarmUp)
	o.LoadTimeout = cmp.Or(o.LoadTimeout, defaultLoadTimeout)
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	return &Runner{options: o, count: &count{launches: o.Launches}}
}

// Close stops all engines. The runner may be used again.
func (r *Runner) Close(ctx context.Context) {
	for _, s := range r.bench {
		s.shut(ctx)
	}
	r.shut(ctx)
}

// shut stops the runner's own engine, not those of the bench.
func (r *Runner) shut(ctx context.Context) {
	if r.pool == nil {
		return
	}
	_ = r.pool.control.Close() // the engine goes away anyhow
	r.pool.engine.Stop(ctx)
	r.pool = nil
}

// kill is shut for an engine that will not end when it is asked.
func (r *Runner) kill(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	r.shut(ctx)
}

// Measure runs a job. It keeps an engine of the last job or block that can measure it, and stops
// all others. An error means that the campaign cannot continue: the context ended, the job is
// contradictory, or no engine can be launched at all. If the context ended, the engine is stopped,
// with its own deadline.
func (r *Runner) Measure(ctx context.Context, job Job) (measure.Measurement, error) {
	if err := job.check(); err != nil {
		return measure.Measurement{}, err
	}
	r.clear(ctx, job)
	return r.measureJob(ctx, job)
}

// measureJob measures a job and leaves the bench alone.
func (r *Runner) measureJob(ctx context.Context, job Job) (measure.Measurement, error) {
	r.resume()
	m := measure.Measurement{Scale: job.Load.Scale}
	windows, err := r.measure(ctx, job, &m)
	m.Launch = r.ordinal()
	if err == nil {
		if m.Failure = r.nameMemory(job.unanswered(windows)); m.Failure == nil {
			m.Windows = windows
		}
		return m, nil
	}
	m.Windows = windows // sizes of a service job that were measured before the failure
	if m.Failure, err = r.fail(ctx, err); err != nil {
		return measure.Measurement{}, err
	}
	return m, nil
}

// ordinal returns the number of the engine's launch, or of the last attempt.
func (r *Runner) ordinal() int {
	if r.pool == nil {
		return r.count.launches
	}
	return r.pool.launch
}

// Try lets an engine load a job's configuration, without a load. It uses the engine of the last job
// if that one fits. The failure is nil if the engine serves the configuration. Errors are those of
// Measure.
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

// Rehearse is Try, followed by one of each of the job's requests. The failure is nil if the engine
// answers them all.
func (r *Runner) Rehearse(ctx context.Context, job Job) (*measure.Failure, error) {
	failure, err := r.Try(ctx, job)
	if failure != nil || err != nil {
		return failure, err
	}
	for _, part := range job.each() {
		for _, request := range part.Requests {
			request.Model = part.Model
			encoded, err := r.pool.control.Encode(request)
			if err != nil {
				return nil, err
			}
			if err := r.round(ctx, encoded, 1); err != nil {
				return r.fail(ctx, job.named(part.Model, err))
			}
		}
	}
	return nil, nil
}

// Server asks the engine of the last job for its metadata.
func (r *Runner) Server(ctx context.Context) (api.ServerMetadata, error) {
	if r.pool == nil {
		return api.ServerMetadata{}, errors.New("cannot ask the server for its metadata: no server runs")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.options.Patience, &overdueError{"asking the server for its metadata", r.options.Patience})
	defer cancel()
	m, err := r.pool.control.ServerMetadata(ctx)
	if err != nil {
		return m, causeOr(ctx, err)
	}
	return m, nil
}

// fail returns the failure that ended a trial. It stops the engine unless the engine still works as
// before. If the engine is not the cause, it returns an error.
func (r *Runner) fail(ctx context.Context, err error) (*measure.Failure, error) {
	failure, err := r.explain(ctx, err)
	if err != nil {
		r.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	r.options.Log.Info("trial failed", "stage", failure.Stage, "reason", failure.Reason)
	switch failure.Stage {
	case measure.StageLoad: // the engine still works as before
	case measure.StageHang, measure.StageMemory:
		r.kill(ctx)
	default:
		r.shut(ctx)
	}
	return failure, nil
}

// measure returns the windows. It fills in the times and the memory, also when it fails.
func (r *Runner) measure(ctx context.Context, job Job, m *measure.Measurement) ([]measure.Window, error) {
	begin := time.Now()
	launched, err := r.launch(ctx, job)
	if err != nil {
		m.Times.Launch = time.Since(begin)
		return nil, err
	}
	r.pool.memory = 0
	ctx, guard := watch(ctx, r.pool.engine, r.limitOf(job))
	defer func() { m.Memory = max(guard.stop(), r.pool.memory) }()
	err = r.configure(ctx, job)
	guard.renew()
	if launched {
		m.Times.Launch = time.Since(begin)
	} else {
		m.Times.Reconfigure = time.Since(begin)
	}
	if err != nil {
		return nil, err
	}
	if len(job.ServiceCurve) > 0 {
		return r.measureServiceCurve(ctx, job, &m.Times, func() int64 { return max(guard.readPeak(), r.pool.memory) })
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
		return r.runLoad(ctx, job, r.turn, m)
	}
	return r.runLoad(ctx, job, r.settled, m)
}

// launch makes sure that the right engine runs. It reports whether it had to start one.
func (r *Runner) launch(ctx context.Context, job Job) (bool, error) {
	if r.pool != nil && !job.Fresh && r.pool.fits(job) {
		return false, nil
	}
	r.shut(ctx)
	r.count.launches++
	engine, err := r.options.Launcher.Launch(ctx, Server{job.Repository, job.Library, job.Policies})
	if err != nil {
		return false, err
	}
	control, err := r.options.Dial(engine.Address())
	if err != nil {
		engine.Stop(context.WithoutCancel(ctx))
		return false, err
	}
	r.pool = &pool{job: job, launch: r.count.launches, engine: engine, control: control, models: map[string]loaded{}}
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
	return p.job.Pool == job.Pool && p.job.Repository == job.Repository && p.job.Library == job.Library &&
		slices.EqualFunc(p.job.Policies, job.Policies, isolation.Policy.Equal)
}
