package ortsweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/model/precision/recipe"
	"tuner/ort/sessionoption"
	"tuner/ortsweep/race"
	"tuner/profile"
	"tuner/runner"
	"tuner/search"
	"tuner/spec"
)

// Engine measures jobs on one engine process that it keeps running, as a runner.Runner does.
type Engine interface {
	Measure(ctx context.Context, job runner.Job) (measure.Measurement, error)
	Close(ctx context.Context)
}

// mostEngines is the largest number of live engine processes. Idle ones cost only memory. A design
// of the race needs eight, plus those of the default and the best so far.
const mostEngines = 10

// variantsFolder is the folder of the variants in a sweep's output folder.
const variantsFolder = "variants"

// WarmUp is the longest warm-up of a window. It is short since windows are short, and are compared
// within their round only.
const WarmUp = 100 * time.Millisecond

// quickly is the longest session creation time with which the candidates of an artifact share an
// engine process, one after the other. A shared process costs that time for each window. A separate
// process costs a few times as much for each candidate.
const quickly = 100 * time.Millisecond

// Engines measures a race's trials. The candidates of an artifact share an engine process if
// sessions are created quickly. Otherwise each has its own process, which stays alive while there
// is room. It is not safe for concurrent use. The caller must call Close.
type Engines struct {
	setup    Setup
	requests runner.Requests
	open     func() Engine
	memory   int64 // limit for all engines together, in bytes
	live     []*liveEngine
	slow     map[string]bool              // artifacts whose sessions are created slowly
	usual    time.Duration                // time of one execution in the first measurement
	variants map[string]modelrepo.Variant // by precision
}

// liveEngine is an engine process that may serve again. The most recently used one is the last of
// the list.
type liveEngine struct {
	artifact string
	serves   string // key of the candidate with the current session
	isShared bool   // it has served several candidates
	engine   Engine
	memory   int64 // peak in bytes
}

// NewEngines prepares the measurement of a sweep's trials. open makes a runner without an engine.
// memory limits the memory of all engines together, in bytes.
func NewEngines(s Setup, requests runner.Requests, open func() Engine, memory int64) *Engines {
	return &Engines{setup: s, requests: requests, open: open, memory: memory, slow: map[string]bool{}, variants: map[string]modelrepo.Variant{}}
}

// Close stops all engines.
func (e *Engines) Close(ctx context.Context) {
	for _, l := range e.live {
		l.engine.Close(context.WithoutCancel(ctx)) // it has its own deadline
	}
	e.live = nil
}

// Figure is the result of one window.
type Figure struct {
	Value    float64        // of the sweep's metric, in its base unit
	Failure  string         // reason why there is no value
	Withheld float64        // CPU time that others took from the window (measure.Withheld)
	Window   measure.Window // zero if there is no value
	Flags    []measure.Flag
	// Memory: peak of the engine process in bytes; 0 unknown, such as for a process that served
	// other candidates too
	Memory int64
}

// Measure measures one window. An error ends the sweep.
func (e *Engines) Measure(ctx context.Context, t race.Trial) (Figure, error) {
	file, ok := e.setup.Subject.File(precisionOf(t.Candidate))
	if !ok {
		return Figure{}, fmt.Errorf("cannot serve precision %q: there is no model file of it", precisionOf(t.Candidate))
	}
	if err := file.CheckUnchanged(); err != nil {
		return Figure{}, err
	}
	f, err := e.measure(ctx, t, file)
	return f, cmp.Or(file.CheckUnchanged(), err) // with a changed file, the window does not apply to the candidate
}

func (e *Engines) measure(ctx context.Context, t race.Trial, file profile.File) (Figure, error) {
	job, err := e.job(t, file)
	if err != nil {
		return Figure{}, err
	}
	if t.Fresh {
		e.Close(ctx)
	}
	l := e.takeEngine(ctx, t.Candidate)
	job.Window = max(job.Window, executionsPerWindow*e.usual)
	m, err := l.engine.Measure(ctx, job)
	for window := patientWindow; window <= mostPatientWindow && err == nil && isEmpty(m); window *= 5 {
		// Maybe the machine was busy, or the model is slow. Only a long window without an execution
		// counts as a failure.
		job.Window = max(window, job.Window)
		m, err = l.engine.Measure(ctx, job)
	}
	if err != nil {
		l.engine.Close(context.WithoutCancel(ctx))
		return Figure{}, err
	}
	e.learn(m, job)
	l.memory = max(l.memory, m.Memory)
	figure := e.figure(m)
	figure.Withheld = e.withheld(t.Candidate, m)
	if l.isShared {
		figure.Memory = 0
	}
	if m.Times.Reconfigure > quickly {
		e.slow[l.artifact] = true
	}
	if figure.Failure != "" {
		l.engine.Close(context.WithoutCancel(ctx))
		return figure, nil
	}
	e.live = append(e.live, l)
	return figure, nil
}

// A window should have executionsPerWindow executions or more. The runner extends it so that each
// session has thirty, up to three times the length. If nothing was executed, the candidate gets
// patientWindow as a second chance, and mostPatientWindow as the last one.
const (
	executionsPerWindow = 5
	patientWindow       = time.Second
	mostPatientWindow   = 5 * time.Second
)

// isEmpty reports whether a window has no information. An engine that hangs does not count; it is
// stopped after a longer time.
func isEmpty(m measure.Measurement) bool {
	return m.Failure == nil && m.Windows[0].Requests == 0
}

// learn records the time of one execution from the first measurement, which is that of the default
// or similar. Windows must be long enough for a slow model.
func (e *Engines) learn(m measure.Measurement, job runner.Job) {
	if e.usual > 0 || len(m.Windows) == 0 || m.Windows[0].Requests == 0 {
		return
	}
	w := m.Windows[0]
	e.usual = w.Duration * time.Duration(job.Load.Concurrency) / time.Duration(w.Requests)
}

// takeEngine removes a candidate's engine from the live ones, or one that it may share. Otherwise
// it makes a new one, if there is room.
func (e *Engines) takeEngine(ctx context.Context, c search.Candidate) *liveEngine {
	key, artifact := c.Key(), c.ArtifactKey()
	i := slices.IndexFunc(e.live, func(l *liveEngine) bool { return l.serves == key })
	if i < 0 && !e.slow[artifact] {
		i = slices.IndexFunc(e.live, func(l *liveEngine) bool { return l.artifact == artifact })
	}
	if i >= 0 {
		l := e.live[i]
		e.live = slices.Delete(e.live, i, i+1)
		l.isShared = l.isShared || l.serves != key
		l.serves = key
		return l
	}
	for len(e.live) > 1 && (len(e.live) >= mostEngines || e.used() > e.memory) {
		e.live[0].engine.Close(context.WithoutCancel(ctx))
		e.live = e.live[1:]
	}
	return &liveEngine{artifact: artifact, serves: key, engine: e.open()}
}

// used returns the memory of the live engines, plus that of one more like the largest of them.
func (e *Engines) used() int64 {
	var sum, largest int64
	for _, l := range e.live {
		sum, largest = sum+l.memory, max(largest, l.memory)
	}
	return sum + largest
}

// figure makes the figure of a window.
func (e *Engines) figure(m measure.Measurement) Figure {
	f := Figure{Flags: m.Flags(), Memory: m.Memory}
	if m.Failure != nil {
		f.Failure = fmt.Sprintf("%s: %s", m.Failure.Stage, m.Failure.Reason)
		return f
	}
	w := m.Windows[0]
	switch {
	case e.setup.Sweep.Measure == spec.SweepThroughput:
		f.Value = float64(w.Inferences) / w.Duration.Seconds()
	case w.Server.Requests > 0:
		f.Value = w.Server.ComputeInfer.Seconds() / float64(w.Server.Requests)
	}
	if f.Value <= 0 {
		f.Failure = "no execution was completed in the window"
		return f
	}
	f.Window = w
	return f
}

// withheld returns the CPU time that others took from a candidate's window. A neighbour on cores
// that few threads leave idle takes nothing from it.
func (e *Engines) withheld(c search.Candidate, m measure.Measurement) float64 {
	config, err := e.setup.config(c)
	if err != nil || len(m.Windows) == 0 {
		return 0
	}
	usable := 0.0 // number of cores; 0: all
	if o, err := modelconfig.ORTOptions(config); err == nil && o.Settings.Whole(sessionoption.IntraOpThreads) > 0 && len(o.GPUAccelerators)+len(o.CPUAccelerators) == 0 {
		w := m.Windows[0]
		usable = float64(o.Settings.Whole(sessionoption.IntraOpThreads)*e.setup.Sweep.Sessions) + w.ClientCPU.Seconds()/max(w.Duration.Seconds(), 1e-9)
	}
	return m.WithheldOf(e.setup.device.Cores, usable)
}

// job returns the runner's job for a trial.
func (e *Engines) job(t race.Trial, file profile.File) (runner.Job, error) {
	config, err := e.setup.config(t.Candidate)
	if err != nil {
		return runner.Job{}, err
	}
	text, err := modelconfig.FormatJSON(config)
	if err != nil {
		return runner.Job{}, fmt.Errorf("cannot print configuration: %w", err)
	}
	variant, err := e.variant(file)
	if err != nil {
		return runner.Job{}, err
	}
	sessions, clients := e.setup.Sweep.Sessions, 1
	if e.setup.Sweep.Measure == spec.SweepThroughput {
		clients = 2 * sessions // each session runs one request while the next one waits
	}
	return runner.Job{
		Pool: t.Candidate.ArtifactKey(), Repository: variant.Dir, Library: e.setup.Library(t.Candidate), Model: variant.Model, Config: string(text),
		Instances: sessions, MaxBatch: int(config.GetMaxBatchSize()), Requests: e.requests,
		AnswerSize: modelconfig.AnswerSize(config, e.setup.Sweep.Batch),
		Load:       measure.Load{Concurrency: clients, BatchSize: e.setup.Sweep.Batch}, Windows: 1, Window: t.Window, MayBeEmpty: true,
	}, nil
}

// variant returns the folder that serves a model file. The configuration in it is the default's,
// since each candidate's configuration is sent to the server.
func (e *Engines) variant(file profile.File) (modelrepo.Variant, error) {
	if v, ok := e.variants[file.Precision]; ok {
		return v, nil
	}
	root, err := filepath.Abs(filepath.Join(e.setup.Sweep.Output, variantsFolder))
	if err != nil {
		return modelrepo.Variant{}, fmt.Errorf("cannot resolve %q: %w", e.setup.Sweep.Output, err)
	}
	v, err := modelrepo.Build(root, file.Source, e.setup.Subject.Config)
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w; free some space and run the same command again", err)
	}
	if err != nil {
		return modelrepo.Variant{}, err
	}
	e.variants[file.Precision] = v
	return v, nil
}

// ModelFiles returns the model files of the measured precisions, in the sweep's own output folder,
// so that they survive an emptied cache. It omits the original, which is the user's file.
func (e *Engines) ModelFiles() (map[string]string, error) {
	files := map[string]string{}
	for precision, v := range e.variants {
		if precision == recipe.Original {
			continue
		}
		folder, err := modelrepo.OpenModel(filepath.Join(v.Dir, v.Model))
		if err != nil {
			return nil, err
		}
		if files[precision], err = folder.ModelFile(); err != nil {
			return nil, err
		}
	}
	return files, nil
}
