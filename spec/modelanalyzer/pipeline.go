package modelanalyzer

import (
	"path/filepath"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"tuner/search/plan"
	"tuner/spec/document"
)

// Model Analyzer profiles an ensemble, or a model with business logic (BLS), with the models that it calls:
// the composing models. They have configurations of their own, and the load goes to the first alone. That is a
// pipeline.

// The fields with composing models.
const (
	ensembleField = "ensemble_composing_models"
	logicField    = "bls_composing_models"
	onCPUField    = "cpu_only_composing_models"
)

// stagesOf lists the models that a model calls: those of its configuration, with the fields that the file has
// for them, and those that only the file names.
func (r *reader) stagesOf(m model) []model {
	var stages []model
	for _, field := range []string{ensembleField, logicField} {
		if r.isSaid(field) {
			stages = append(stages, r.models(field, PerModel)...)
		}
	}
	if _, dir := r.text("model_repository", ""); dir != "" && r.machine.Stages != nil {
		for _, name := range r.machine.Stages(r.onDisk(filepath.Join(dir, m.name))) {
			if !slices.ContainsFunc(stages, func(s model) bool { return s.name == name }) {
				stages = append(stages, model{name, m.at, nil})
			}
		}
	}
	if v, has := r.said(onCPUField); has {
		for _, on := range r.models(onCPUField, PerModel) {
			i := slices.IndexFunc(stages, func(s model) bool { return s.name == on.name })
			if i < 0 {
				r.fail(v, document.Error{Problem: "names " + strconv.Quote(on.name) + ", which is no composing model", Hint: "name it in " + ensembleField + " or " + logicField})
				continue
			}
			given := map[string]value{"cpu_only": {&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true", Line: on.at.node.Line}, on.at.path}}
			for name, v := range stages[i].given {
				given[name] = v
			}
			stages[i].given = given
		}
	}
	return stages
}

// onDisk returns a folder of the file, which is relative to the working folder.
func (r *reader) onDisk(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.machine.Dir, name)
}

// checkComposing reports composing models that belong to several models, or to models under load at once.
func (r *reader) checkComposing(models []model) {
	for _, field := range []string{ensembleField, logicField} {
		if v, has := r.said(field); has && len(models) > 1 {
			r.fail(v, document.Error{Problem: "belongs to one model, and profile_models has several", Hint: "write a file for each pipeline"})
		}
	}
}

// pipeline translates the file for a model that calls others, and has the result read.
func (r *reader) pipeline(m model, stages []model, batch value, folder string) (Campaign, bool) {
	before := len(r.errors)
	n := newNative()
	repository, dir := r.text("model_repository", "")
	if dir == "" {
		repository = m.at
		r.fail(m.at, document.Error{Problem: "is in no model_repository", Hint: "add model_repository: FOLDER; tuner reads the models there"})
	}
	n.text(repository, r.relativePath(filepath.Join(dir, m.name)), "pipeline")
	n.text(m.at, r.relativePath(r.campaignFolder(folder)), "output")
	r.runner(n, m)
	r.searchPipeline(n, m, stages)
	if v, has := m.given["model_config_parameters"]; has && v.isSaid() {
		r.warn(v, "the configuration of a model that calls others is not searched, only those of its composing models")
	}
	for _, s := range stages {
		own := newNative()
		r.space(own, s)
		n.graft(own, "models", s.name)
		n.origins["models."+s.name] = s.at
	}
	r.load(n, m, batch)
	r.goal(n, m)
	return r.finish(n, analysis{at: m.at, folder: folder}, before)
}

// searchPipeline writes how the stages are searched.
func (r *reader) searchPipeline(n *native, m model, stages []model) {
	strategy := plan.Stagewise
	at, mode := r.mode(m, strategy)
	isAutomatic := func(s model) bool { return !r.isManual(s) }
	switch {
	case mode == "quick":
		r.warn(at, "the search of composing models is tuner's own (%s), which measures their service times first", strategy)
	case mode == "brute" || mode == "" && !slices.ContainsFunc(stages, isAutomatic):
		strategy = plan.Grid
	}
	n.word(at, strategy, "search", "strategy")
	n.word(at, strconv.Itoa(unlimited), "search", "budget", "trials")
	if v, has := r.clientFlags(m)["measurement-interval"]; has && v.isSaid() {
		n.text(v, v.node.Value+"ms", "search", "window")
	}
}
