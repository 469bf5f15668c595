package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/runner"
	"tuner/search"
	"tuner/spec"
)

// variantsFolder is the folder of the variants within a campaign's output folder.
const variantsFolder = "variants"

// Engines measures trials on engine processes: it makes the variant of a trial's candidate and hands the runner the job. Final trials
// may have a runner of their own; an engine of the other one never runs beside that which is measured.
type Engines struct {
	setup    Setup
	runner   *runner.Runner
	finals   *runner.Runner // nil: runner
	requests runner.Requests
	batches  map[int]runner.Batches       // of service trials, by size
	largest  map[int]runner.Batches       // of footprints, by size
	variants map[string]modelrepo.Variant // by precision
	memory   map[string]int64             // the most that an engine took, in bytes, by pool
}

// NewEngines prepares the measuring of a campaign's trials on r, and of its final trials on finals, nil for the same.
func NewEngines(setup Setup, r, finals *runner.Runner, requests runner.Requests) *Engines {
	return &Engines{setup: setup, runner: r, finals: finals, requests: requests, batches: map[int]runner.Batches{},
		largest: map[int]runner.Batches{}, variants: map[string]modelrepo.Variant{}, memory: map[string]int64{}}
}

// Measure implements Trialer.
func (e *Engines) Measure(ctx context.Context, trial search.Trial) (measure.Measurement, error) {
	job, err := e.job(trial)
	if err != nil {
		return measure.Measurement{}, err
	}
	m, err := e.turnTo(ctx, trial).Measure(ctx, job)
	e.note(trial, m)
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
		e.note(block[i], m)
	}
	for _, trial := range block {
		err = cmp.Or(e.checkFile(trial.Candidate), err)
	}
	return measured, err
}

// checkFile makes sure that a candidate's model file is the one that the campaign began with. It is asked before and after each
// measurement: one of a file that changed meanwhile, perhaps to one that does not load, says nothing of the candidate.
func (e *Engines) checkFile(c search.Candidate) error {
	f, err := e.file(c)
	if err != nil {
		return err
	}
	return f.CheckUnchanged()
}

// note remembers what an engine took, for those that are to run beside each other.
func (e *Engines) note(trial search.Trial, m measure.Measurement) {
	pool := trial.Candidate.PoolKey()
	e.memory[pool] = max(e.memory[pool], m.Memory)
}

// job is what the runner needs to measure a trial.
func (e *Engines) job(trial search.Trial) (runner.Job, error) {
	config, err := spec.Apply(e.setup.Subject.Config, trial.Candidate)
	if err != nil {
		return runner.Job{}, err
	}
	text, err := modelconfig.FormatJSON(config)
	if err != nil {
		return runner.Job{}, fmt.Errorf("cannot print configuration: %w", err)
	}
	if err := e.checkFile(trial.Candidate); err != nil {
		return runner.Job{}, err
	}
	variant, err := e.variant(trial.Candidate)
	if err != nil {
		return runner.Job{}, err
	}
	curve, err := e.curve(trial.Sizes)
	if err != nil {
		return runner.Job{}, err
	}
	largest, err := e.largestOf(int(config.GetMaxBatchSize()))
	if err != nil {
		return runner.Job{}, err
	}
	pool := trial.Candidate.PoolKey()
	return runner.Job{
		Pool: pool, Repository: variant.Dir, Library: e.setup.Library(trial.Candidate), Model: variant.Model, Config: string(text),
		Instances: max(1, modelconfig.Instances(config, e.setup.Facts.GPUs)), MaxBatch: int(config.GetMaxBatchSize()), Requests: e.requests,
		AnswerSize: modelconfig.AnswerSize(config, trial.Load.BatchSize),
		Load:       trial.Load, Windows: trial.Windows, Window: trial.Window, Enough: enough(trial), Fresh: trial.Fresh,
		Curve: curve, CurveEnds: trial.EndsAfter, Largest: largest,
		Memory: e.memory[pool], MemoryLimit: memoryLimit(e.setup.Profile.Goal), Percentiles: e.setup.Profile.Goal.Percentiles(),
	}, nil
}

// enough is how a trial's windows are cut; nil where they are not.
func enough(trial search.Trial) func(measure.Window) bool {
	if len(trial.Worth) == 0 {
		return nil
	}
	return trial.IsFutile
}

// turnTo returns the runner of a trial, and stops what the other one has running.
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

// curve returns the requests of a service trial's windows; none for any other trial.
func (e *Engines) curve(sizes []int) ([]runner.Batches, error) {
	var curve []runner.Batches
	for _, size := range sizes {
		b, ok := e.batches[size]
		if !ok {
			var err error
			if b, err = batches(e.setup.Profile, e.setup.Subject, size); err != nil {
				return nil, err
			}
			e.batches[size] = b
		}
		curve = append(curve, b)
	}
	return curve, nil
}

// largestOf returns the request of a configuration's footprint: of its largest batch, or of one inference where it does not batch.
func (e *Engines) largestOf(maxBatch int) (runner.Batches, error) {
	size := max(maxBatch, 1)
	b, ok := e.largest[size]
	if ok {
		return b, nil
	}
	requests, err := makeRequests(e.setup.Profile, e.setup.Subject, 1, size)
	if err != nil {
		return b, err
	}
	b = runner.Batches{Size: size, Requests: requests}
	e.largest[size] = b
	return b, nil
}

// file returns the candidate's model file.
func (e *Engines) file(c search.Candidate) (File, error) {
	precision := spec.PrecisionOriginal
	if v, ok := c.Get(search.KnobPrecision); ok {
		precision = string(v)
	}
	f, ok := e.setup.Subject.File(precision)
	if !ok {
		return File{}, fmt.Errorf("candidate %s: there is no model file of precision %q", c, precision)
	}
	return f, nil
}

// variant returns the folder that serves the candidate's model file; the configuration in it is the default's, since each
// trial's travels over the wire.
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

// build makes the variant of one of the subject's files with the default configuration below a folder.
func (s Subject) build(folder string, f File) (modelrepo.Variant, error) {
	root, err := filepath.Abs(folder)
	if err != nil {
		return modelrepo.Variant{}, fmt.Errorf("cannot resolve %q: %w", folder, err)
	}
	v, err := modelrepo.Build(root, f.Source, s.Config)
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w; free some space and run the same command again to go on", err)
	}
	return v, err
}

// memoryLimit is the memory constraint's upper bound in bytes, with room to see by how much it is missed; 0 without one.
func memoryLimit(goal search.Goal) int64 {
	for _, c := range goal.Constraints {
		if c.Metric == measure.Memory && c.Max != nil {
			return int64(2 * *c.Max)
		}
	}
	return 0
}
