package profile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/model/modelrepo"
	"tuner/model/precision/recipe"
	"tuner/model/tensors"
	"tuner/ort/addon"
	"tuner/runner"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/knobs"
)

// A pipeline is a model that calls its stages. Clients send their requests to it alone, so the requests,
// loads and windows of a campaign are its own, as those of one model. Its stages are loaded beside it, each
// in a configuration of its own.

// OpenPipeline reads the model that calls the stages. Errors are InputErrors.
func OpenPipeline(p spec.Profile, stages []Setup) (Subject, error) {
	s, err := openFolder(p, p.Pipeline, p.Name)
	if err != nil {
		return Subject{}, &InputError{fmt.Errorf("%s: pipeline: %w", p.Path, err)}
	}
	if err := checkSteps(s.Config, stages); err != nil {
		return Subject{}, &InputError{fmt.Errorf("%s: pipeline: %w", p.Path, err)}
	}
	if s.Config.GetMaxBatchSize() == 0 && p.Load.BatchSize > 1 {
		return Subject{}, &InputError{fmt.Errorf("%s: load.client_batch_size: is %d, and the pipeline does not batch (max_batch_size: 0)", p.Path, p.Load.BatchSize)}
	}
	s.Values = tensors.Values(s.Config, called(stages))
	if s.Libraries, err = p.Model.Libraries.Resolve(addon.InFile()); err != nil {
		return Subject{}, &InputError{fmt.Errorf("%s: %w", p.Path, err)}
	}
	if s.Rows, err = ReadRows(p, s.Model); err != nil {
		return Subject{}, err
	}
	if s.Rows != nil && s.Rows.Parts != nil {
		return Subject{}, &InputError{fmt.Errorf("%s: load.inputs.data: rows of several shapes are not supported beside pipeline: give rows of one shape", p.Path)}
	}
	return s, nil
}

// checkSteps refuses a model without stages of its own, and stages that it does not call. Which models
// business logic calls is not known.
func checkSteps(c *modelconfig.Config, stages []Setup) error {
	steps := c.GetEnsembleScheduling().GetStep()
	if c.GetEnsembleScheduling() == nil {
		return nil
	}
	for _, s := range stages {
		name := s.Subject.Name
		if !slices.ContainsFunc(steps, func(step *configpb.ModelEnsembling_Step) bool { return step.GetModelName() == name }) {
			return fmt.Errorf("the ensemble %q has no step that calls %q; remove it from models", c.GetName(), name)
		}
		if s.Subject.Config.GetEnsembleScheduling() != nil {
			return fmt.Errorf("the step %q of the ensemble %q is an ensemble itself, which is not supported", name, c.GetName())
		}
	}
	return nil
}

// called lists the stages with a model file of their own.
func called(stages []Setup) []tensors.Called {
	var list []tensors.Called
	for _, s := range stages {
		if !s.Facts.IsForeign {
			list = append(list, tensors.Called{Name: s.Subject.Name, Model: s.Subject.Model, Shapes: s.Subject.shapes(s.Profile)})
		}
	}
	return list
}

// After lists, for each stage of an ensemble, the stages whose answers it needs. A stage that business logic
// calls is taken to come after those before it in the profile. A circle, of stages that are called twice, is
// cut at its end.
func After(s Subject, stages []Setup) [][]string {
	after := make([][]string, len(stages))
	if s.Config.GetEnsembleScheduling() == nil {
		for i := 1; i < len(stages); i++ {
			after[i] = []string{stages[i-1].Subject.Name}
		}
		return after
	}
	at := map[string]int{}
	for i, stage := range stages {
		at[stage.Subject.Name] = i
	}
	var needs func(from, to int) bool // whether a stage needs another's answers
	needs = func(from, to int) bool {
		return from == to || slices.ContainsFunc(after[from], func(name string) bool { return needs(at[name], to) })
	}
	steps := s.Config.GetEnsembleScheduling().GetStep()
	for _, step := range steps {
		i, known := at[step.GetModelName()]
		for _, before := range steps {
			j, has := at[before.GetModelName()]
			if known && has && feeds(before, step) && !needs(j, i) && !slices.Contains(after[i], before.GetModelName()) {
				after[i] = append(after[i], before.GetModelName())
			}
		}
	}
	return after
}

// feeds reports whether a step makes a tensor that another one takes.
func feeds(from, to *configpb.ModelEnsembling_Step) bool {
	for _, made := range from.GetOutputMap() {
		for _, taken := range to.GetInputMap() {
			if made == taken {
				return true
			}
		}
	}
	return false
}

// IsForeign reports whether the model of a stage is the folder of a model of another backend than ONNX
// Runtime's.
func IsForeign(p spec.Profile) bool {
	info, err := os.Stat(p.Model.Path)
	if err != nil || !info.IsDir() {
		return false
	}
	m, err := modelrepo.OpenModel(p.Model.Path)
	if err != nil {
		return false
	}
	c, err := m.Config()
	if err != nil {
		return false
	}
	return modelconfig.IsForeign(c)
}

// OpenForeign reads a stage of another backend. Its space may have the knobs of instances and of the batcher
// alone. Errors are InputErrors.
func OpenForeign(p spec.Profile) (Subject, error) {
	s, err := openFolder(p, p.Model.Path, p.Name)
	if err != nil {
		return Subject{}, &InputError{fmt.Errorf("%s: model: %w", p.Path, err)}
	}
	known := []string{search.KnobInstanceCount, search.KnobInstanceGroup, search.KnobMaxBatchSize, search.KnobMaxQueueDelay, search.KnobPreferredBatchSize}
	for _, k := range p.Knobs {
		if !slices.Contains(known, k.Name) {
			return Subject{}, &InputError{fmt.Errorf("%s: space.%s: the model's backend is %q, so only %q can be searched", p.Path, k.Name, s.Config.GetBackend(), known)}
		}
	}
	return s, nil
}

// openFolder reads a model without an ONNX file: its folder, and the tensors of its configuration.
func openFolder(p spec.Profile, dir, name string) (Subject, error) {
	folder, err := modelrepo.OpenModel(dir)
	if err != nil {
		return Subject{}, err
	}
	if folder.ConfigPath == "" {
		return Subject{}, fmt.Errorf("model folder %q has no config.pbtxt", dir)
	}
	config, err := folder.Config()
	if err != nil {
		return Subject{}, err
	}
	config = modelconfig.Clone(config)
	config.Name = name
	isEngines := config.GetBackend() == modelconfig.IdentityBackend || config.GetEnsembleScheduling() != nil
	switch {
	case isEngines:
		if config, err = modelconfig.Complete(config, modelconfig.CompleteOptions{DirName: name}); err != nil {
			return Subject{}, fmt.Errorf("%s: %w", folder.ConfigPath, err)
		}
	case p.UsesBundled():
		return Subject{}, fmt.Errorf("the backend %q of model %q is not part of the bundled engine; measure the pipeline on a Triton: runner: {mode: local}", config.GetBackend(), name)
	}
	if config.GetSequenceBatching() != nil {
		return Subject{}, fmt.Errorf("model %q uses sequence_batching, and the load of a campaign has no sequences", name)
	}
	source, err := modelrepo.Folder(dir)
	if err != nil {
		return Subject{}, err
	}
	file := File{Precision: recipe.Original, Source: source}
	files, err := source.Files()
	if err != nil {
		return Subject{}, err
	}
	for _, path := range files {
		stamps, err := newStamps(path, nil)
		if err != nil {
			return Subject{}, err
		}
		file.stamps = append(file.stamps, stamps...)
		file.Bytes += stamps[0].info.Size()
	}
	return Subject{Name: name, Files: []File{file}, Config: config, Model: tensors.Of(config)}, nil
}

// pipelineJob returns what a trial's job has of a pipeline: its own requests and load, and the
// configurations of its stages.
//
// As Triton asks, no stage may batch less than the pipeline. The pipeline batches nothing itself, so it gets
// the largest request of the trial as its max_batch_size.
func (e *Engines) pipelineJob(trial search.Trial) (runner.Job, error) {
	own := trial
	own.Candidate = search.Candidate{}
	config := modelconfig.Clone(e.setup.Subject.Config)
	if config.GetMaxBatchSize() > 0 {
		config.MaxBatchSize = int32(slices.Max(append([]int{1, trial.Load.BatchSize}, trial.Sizes...)))
	}
	job, err := e.jobOf(own, config)
	if err != nil {
		return runner.Job{}, err
	}
	job.Largest = runner.Batches{} // the largest batches of stages come from the batchers, and no request makes them
	for _, part := range e.parts {
		stage, err := part.stageJob(trial.Candidate.Of(part.setup.Subject.Name))
		if err != nil {
			return runner.Job{}, fmt.Errorf("stage %q: %w", part.setup.Subject.Name, err)
		}
		job.Stages = append(job.Stages, stage)
		job.Instances, job.MaxBatch = max(job.Instances, stage.Instances), max(job.MaxBatch, stage.MaxBatch)
	}
	return job, nil
}

// stageJob returns the configuration of a stage.
func (e *Engines) stageJob(c search.Candidate) (runner.Job, error) {
	config, err := knobs.Apply(e.setup.Subject.Config, c)
	if err != nil {
		return runner.Job{}, err
	}
	return e.configured(config)
}

// Rehearse lets the engine load the default configuration, and answer one request. It is for pipelines.
func (e *Engines) Rehearse(ctx context.Context) (*measure.Failure, error) {
	axis := e.setup.Profile.Space(e.setup.Facts).Load
	job, err := e.job(search.Trial{Load: axis.At(axis.First()), Windows: 1, Window: time.Second})
	if err != nil {
		return nil, err
	}
	if len(job.Requests) == 0 {
		return nil, errors.New("cannot rehearse a pipeline without requests")
	}
	job.Requests = job.Requests[:1]
	return e.runner.Rehearse(ctx, job)
}
