package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/model/precision/recipe"
	"tuner/runner"
	"tuner/search"
	"tuner/spec/knobs"
)

// variantsFolder is the folder of the variants in a campaign's output folder.
const variantsFolder = "variants"

// Engines measures trials on engine processes. It makes the variant of a trial's candidate and
// passes the job to the runner. Final trials may have a runner of their own. Only the runner of the
// current trial has a running engine.
type Engines struct {
	setup    Setup
	runner   *runner.Runner
	finals   *runner.Runner                   // nil: the same as runner
	requests map[search.Value]runner.Requests // by padding
	batches  map[served]runner.Batches        // requests of service trials
	largest  map[footprint]runner.Batches     // requests of footprints
	variants map[string]modelrepo.Variant     // by precision
	memory   map[string]int64                 // largest memory of an engine in bytes, by pool
	parts    []*Engines                       // several models, or stages: the jobs of each alone, in the setup's order
	groups   map[string]modelrepo.Group       // several models: by the digests of their variants
}

// NewEngines prepares the measurement of a campaign's trials on r, and of its final trials on
// finals (nil: also on r). requests are those of the model or the pipeline, or of each of several models in
// the order of the setup's parts.
func NewEngines(setup Setup, r, finals *runner.Runner, requests ...runner.Requests) *Engines {
	e := &Engines{setup: setup, runner: r, finals: finals, requests: map[search.Value]runner.Requests{}, batches: map[served]runner.Batches{},
		largest: map[footprint]runner.Batches{}, variants: map[string]modelrepo.Variant{}, memory: map[string]int64{}, groups: map[string]modelrepo.Group{}}
	isOne := !setup.IsSeveral() || setup.Profile.IsPipeline()
	if isOne && len(requests) > 0 { // a stage has none
		e.requests[search.NoPadding] = requests[0]
	}
	for i, part := range setup.Parts {
		if isOne {
			e.parts = append(e.parts, NewEngines(part, nil, nil))
		} else {
			e.parts = append(e.parts, NewEngines(part, nil, nil, requests[i]))
		}
	}
	return e
}

// Measure implements Trialer.
func (e *Engines) Measure(ctx context.Context, trial search.Trial) (measure.Measurement, error) {
	job, err := e.job(trial)
	if err != nil {
		return measure.Measurement{}, err
	}
	m, err := e.turnTo(ctx, trial).Measure(ctx, job)
	e.recordMemory(trial, m)
	return m, cmp.Or(e.checkFile(trial.Candidate), err)
}

// MeasureBlock implements Trialer.
func (e *Engines) MeasureBlock(ctx context.Context, block []search.Trial) ([]measure.Measurement, error) {
	jobs := make([]runner.Job, len(block))
	for i, trial := range block {
		var err error
		if jobs[i], err = e.job(trial); err != nil {
			return nil, err
		}
	}
	measured, err := e.turnTo(ctx, block[0]).Block(ctx, jobs, block[0].Windows)
	for i, m := range measured {
		e.recordMemory(block[i], m)
	}
	for _, trial := range block {
		err = cmp.Or(e.checkFile(trial.Candidate), err)
	}
	return measured, err
}

// checkFile checks that a candidate's model file is the one with which the campaign began. It runs
// before and after each measurement. If the file changed in between, maybe into one that does not
// load, the measurement does not apply to the candidate.
func (e *Engines) checkFile(c search.Candidate) error {
	for _, part := range e.parts {
		if err := part.checkFile(c.Of(part.setup.Subject.Name)); err != nil {
			return err
		}
	}
	switch {
	case e.setup.Profile.IsPipeline():
		c = search.Candidate{}
	case len(e.parts) > 0:
		return nil
	}
	f, err := e.file(c)
	if err != nil {
		return err
	}
	return f.CheckUnchanged()
}

// recordMemory records an engine's memory, for later blocks of engines.
func (e *Engines) recordMemory(trial search.Trial, m measure.Measurement) {
	pool := trial.Candidate.PoolKey()
	e.memory[pool] = max(e.memory[pool], m.Memory)
}

// job returns the runner's job for a trial: what belongs to the model or the models, and what they
// have in common.
func (e *Engines) job(trial search.Trial) (runner.Job, error) {
	if err := e.checkFile(trial.Candidate); err != nil {
		return runner.Job{}, err
	}
	job, err := e.modelJob(trial)
	if err != nil {
		return runner.Job{}, err
	}
	if job.Repository, err = e.repository(trial.Candidate); err != nil {
		return runner.Job{}, err
	}
	job.Pool, job.Library = trial.Candidate.PoolKey(), e.setup.Library(trial.Candidate)
	job.Windows, job.Window, job.Fresh = trial.Windows, trial.Window, trial.Fresh
	job.Memory, job.MemoryLimit = e.memory[job.Pool], memoryLimit(e.setup.Profile.Goal)
	return job, nil
}

// modelJob returns what a trial's job has of the model, or of several.
func (e *Engines) modelJob(trial search.Trial) (runner.Job, error) {
	switch {
	case e.setup.Profile.IsPipeline():
		return e.pipelineJob(trial)
	case len(e.parts) > 0:
		return e.partJobs(trial)
	}
	config, err := knobs.Apply(e.setup.Subject.Config, trial.Candidate)
	if err != nil {
		return runner.Job{}, err
	}
	return e.jobOf(trial, config)
}

// configured returns what a job has of a configuration of the model, without its load.
func (e *Engines) configured(config *modelconfig.Config) (runner.Job, error) {
	text, err := modelconfig.FormatJSON(config)
	if err != nil {
		return runner.Job{}, fmt.Errorf("cannot print configuration: %w", err)
	}
	return runner.Job{Model: e.setup.Subject.Name, Config: string(text), Instances: max(1, modelconfig.Instances(config, e.setup.Facts.GPUs)),
		MaxBatch: int(config.GetMaxBatchSize())}, nil
}

// jobOf returns what a trial's job has of a model in a configuration.
func (e *Engines) jobOf(trial search.Trial, config *modelconfig.Config) (runner.Job, error) {
	job, err := e.configured(config)
	if err != nil {
		return runner.Job{}, err
	}
	curve, err := e.serviceRequests(trial)
	if err != nil {
		return runner.Job{}, err
	}
	padding, _ := trial.Candidate.Get(search.KnobPadding)
	padding = cmp.Or(padding, search.NoPadding)
	if job.Requests, err = e.requestsOf(padding); err != nil {
		return runner.Job{}, err
	}
	if job.Largest, err = e.largestOf(footprint{job.MaxBatch, padding}); err != nil {
		return runner.Job{}, err
	}
	job.Order = e.setup.Subject.Order(e.setup.Profile, len(job.Requests))
	job.AnswerSize = modelconfig.AnswerSize(config, trial.Load.BatchSize)
	job.Load, job.Arrivals, job.Enough = trial.Load, e.setup.Subject.Arrivals(e.setup.Profile.Load.Arrivals), enough(trial)
	job.ServiceCurve, job.ServiceCurveEnds, job.Percentiles = curve, e.endsAfter(trial), e.setup.Profile.Goal.Percentiles()
	return job, nil
}

// enough returns the function that decides whether a trial's windows are cut; nil if they are never
// cut.
func enough(trial search.Trial) func(measure.Window) bool {
	if len(trial.Worth) == 0 {
		return nil
	}
	return trial.IsFutile
}

// turnTo returns the runner of a trial, and stops the engine of the other runner.
func (e *Engines) turnTo(ctx context.Context, trial search.Trial) *runner.Runner {
	if e.finals == nil {
		return e.runner
	}
	now, other := e.runner, e.finals
	if trial.Phase == search.PhaseFinal {
		now, other = other, now
	}
	other.Close(ctx)
	return now
}

// served are the requests of a service trial's window.
type served struct{ size, kind int }

// serviceRequests returns the requests of a service trial's windows; none for other trials.
func (e *Engines) serviceRequests(trial search.Trial) ([]runner.Batches, error) {
	var curve []runner.Batches
	for i := range len(trial.Sizes) * max(len(trial.Kinds), 1) {
		key := served{}
		key.size, _ = trial.SizeOf(i)
		if n := len(trial.Kinds); n > 0 {
			key.kind = trial.Kinds[i%n]
		}
		b, ok := e.batches[key]
		if !ok {
			var err error
			if b, err = batches(e.setup.Profile, e.setup.Subject, key.size, key.kind); err != nil {
				return nil, err
			}
			e.batches[key] = b
		}
		curve = append(curve, b)
	}
	return curve, nil
}

// endsAfter returns the function that ends a service trial. A size of several kinds takes the mean
// of their times, by the shares of the measured kinds.
func (e *Engines) endsAfter(trial search.Trial) func([]time.Duration) bool {
	n := len(trial.Kinds)
	if n == 0 {
		return trial.EndsAfter
	}
	return func(times []time.Duration) bool {
		if len(times)%n != 0 {
			return false
		}
		var means []time.Duration
		for from := 0; from < len(times); from += n {
			sum, shares := 0.0, 0.0
			for i, k := range trial.Kinds {
				share := e.setup.Subject.Mix[k].Share
				sum, shares = sum+share*times[from+i].Seconds(), shares+share
			}
			means = append(means, time.Duration(sum/shares*float64(time.Second)))
		}
		return trial.EndsAfter(means)
	}
}

// requestsOf returns the requests of loads under a padding.
func (e *Engines) requestsOf(padding search.Value) (runner.Requests, error) {
	requests, ok := e.requests[padding]
	if ok {
		return requests, nil
	}
	requests, err := Padded(e.setup.Profile, e.setup.Subject, padding)
	e.requests[padding] = requests
	return requests, err
}

// footprint names the request of a footprint.
type footprint struct {
	maxBatch int // of the configuration; 0 without batching
	padding  search.Value
}

// largestOf returns the request for a configuration's footprint: its largest batch, or one
// inference if it does not batch.
func (e *Engines) largestOf(of footprint) (runner.Batches, error) {
	of.maxBatch = max(of.maxBatch, 1)
	b, ok := e.largest[of]
	if ok {
		return b, nil
	}
	b, err := largest(e.setup.Profile, e.setup.Subject, of.maxBatch, of.padding)
	if err != nil {
		return b, err
	}
	e.largest[of] = b
	return b, nil
}

// file returns the candidate's model file.
func (e *Engines) file(c search.Candidate) (File, error) {
	precision := recipe.Original
	if v, ok := c.Get(search.KnobPrecision); ok {
		precision = string(v)
	}
	f, ok := e.setup.Subject.File(precision)
	if !ok {
		return File{}, fmt.Errorf("candidate %s: there is no model file of precision %q", c, precision)
	}
	return f, nil
}

// repository returns the folder of the model repository that serves a candidate.
func (e *Engines) repository(c search.Candidate) (string, error) {
	if len(e.parts) > 0 {
		return e.group(c)
	}
	v, err := e.variant(c)
	return v.Dir, err
}

// variant returns the folder that serves the candidate's model file. The configuration in it is the
// default's, since each trial's configuration is sent to the server.
func (e *Engines) variant(c search.Candidate) (modelrepo.Variant, error) {
	f, err := e.file(c)
	if err != nil {
		return modelrepo.Variant{}, err
	}
	if v, ok := e.variants[f.Precision]; ok {
		return v, nil
	}
	v, err := e.setup.Subject.build(filepath.Join(e.setup.Profile.Output, variantsFolder), f)
	if err != nil {
		return modelrepo.Variant{}, err
	}
	e.variants[f.Precision] = v
	return v, nil
}

// build makes the variant of one of the subject's files, with the default configuration, below a
// folder.
func (s Subject) build(folder string, f File) (modelrepo.Variant, error) {
	root, err := filepath.Abs(folder)
	if err != nil {
		return modelrepo.Variant{}, fmt.Errorf("cannot resolve %q: %w", folder, err)
	}
	v, err := modelrepo.Build(root, f.Source, s.Config)
	return v, withRemedy(err)
}

// withRemedy adds what a user can do about a full disk.
func withRemedy(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w; free some space and run the same command again to resume", err)
	}
	return err
}

// memoryLimit returns the memory constraint's upper bound in bytes; 0 without a constraint.
func memoryLimit(goal search.Goal) int64 {
	for _, c := range goal.Constraints {
		if c.Metric == measure.Memory && c.Max != nil {
			return int64(*c.Max)
		}
	}
	return 0
}
