package tuned

import (
	"fmt"
	"slices"

	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/report/result"
)

// A pipeline is one model for its clients, and several folders on a server: those of its stages and its own.
// Load, figures and limits are the pipeline's. What belongs to a folder is each stage's own: configuration,
// precision, instances, digest and libraries.

// pipelineOf makes the pipeline of a result with its stages.
func pipelineOf(path string, d result.Result, repository string) (Model, error) {
	best, err := bestOf(path, d)
	if err != nil {
		return Model{}, err
	}
	own, err := partOf(d, len(d.Stages), d.Model)
	if err != nil {
		return Model{}, fmt.Errorf("%s: %w", path, err)
	}
	m, err := modelOf(path, own)
	if err != nil {
		return Model{}, err
	}
	m.Repository = repository
	m.Precision, m.Provider = best.Setup.Precision, best.Setup.Provider // of all stages, or "" where they differ
	for i, name := range d.Stages {
		stage, err := stageOf(path, d, i)
		if err != nil {
			return Model{}, err
		}
		if name == m.Name || slices.ContainsFunc(m.Stages, func(other Model) bool { return other.Name == name }) {
			return Model{}, fmt.Errorf("%s: stages: %q appears twice", path, name)
		}
		stage.Repository, stage.Host, stage.Remote, stage.Server = repository, m.Host, m.Remote, m.Server
		m.Stages = append(m.Stages, stage)
	}
	return m, checkFigures(path, m)
}

// stageOf makes the stage of a pipeline with an index: its folder's matters, and its share of a request.
func stageOf(path string, d result.Result, i int) (Model, error) {
	own, err := partOf(d, i, d.Stages[i])
	if err != nil {
		return Model{}, fmt.Errorf("%s: %w", path, err)
	}
	best, err := bestOf(path, own)
	if err != nil {
		return Model{}, err
	}
	stage, err := folderOf(path, own, best)
	stage.Calls = 1
	for _, s := range shownStages(d) {
		if s.Model == stage.Name {
			stage.Calls, stage.Values = s.Calls, map[measure.Metric]measure.Estimate{measure.QueueTime: {Value: s.Queue, Lo: s.Queue, Hi: s.Queue}}
		}
	}
	return stage, err
}

// shownStages lists the figures of the best configuration's stages; none if the result has none.
func shownStages(d result.Result) []result.Stage {
	if d.Explanation == nil {
		return nil
	}
	for _, s := range d.Explanation.Subjects {
		if s.Name == d.Best {
			return s.Stages
		}
	}
	return nil
}

// partOf returns what a result of a pipeline has of the model with an index: of a stage, or of the pipeline, which
// is the last one. The figures are the pipeline's. The error names a configuration without the model.
func partOf(d result.Result, i int, model string) (result.Result, error) {
	if model != d.Model { // what the clients ask and get is the pipeline's
		d.Mix = nil
	}
	return folderPart(d, i, model)
}

// Folders lists the models that a server has in its repository for this one: the stages of a pipeline and then
// the pipeline itself, or the model alone.
func (m Model) Folders() []Model { return append(slices.Clone(m.Stages), m.own()) }

// Computing lists the models with instances: those of Folders except an ensemble.
func (m Model) Computing() []Model {
	return slices.DeleteFunc(m.Folders(), func(m Model) bool { return m.Config.GetEnsembleScheduling() != nil })
}

// own returns the model without its stages.
func (m Model) own() Model {
	m.Stages = nil
	return m
}

// IsForeign reports whether another backend than ONNX Runtime's serves the model, or it is an ensemble.
func (m Model) IsForeign() bool { return modelconfig.IsForeign(m.Config) }

// requests returns how many requests the models of a server get for each of a client's: one, and of a pipeline
// also those of its stages.
func (m Model) requests() float64 {
	n := 1.0
	for _, s := range m.Stages {
		n += s.Calls
	}
	return n
}

// waits returns the mean time of a client's request in queues, in seconds: of a pipeline in those of its stages
// too.
func (m Model) waits() float64 {
	sum := m.Values[measure.QueueTime].Value
	for _, s := range m.Stages {
		sum += s.Calls * s.Values[measure.QueueTime].Value
	}
	return sum
}
