package spec

import (
	"fmt"
	"path/filepath"
	"slices"

	"tuner/search"
	"tuner/search/plan"
	"tuner/spec/document"
	"tuner/spec/goals"
	"tuner/spec/stages"
)

// A pipeline is a model that calls others: an ensemble, or a model with business logic of its own. Clients
// send requests to it alone, so load, limits and objective are those of one model. What is searched are
// its stages, in the section models. Package spec/stages completes that section from an ensemble's
// configuration, since this package opens no file.

// pipelineField is the name of the field with the folder of the pipeline.
const pipelineField = "pipeline"

// IsPipeline reports whether the profile's models are the stages of a pipeline.
func (p Profile) IsPipeline() bool { return p.Pipeline != "" }

// readPipeline reads a profile of a pipeline.
func (r profileReader) readPipeline(d *document.Document, root document.Value) (Profile, error) {
	r.strategies, r.p.Search.Strategy = plan.OfPipelines(), plan.OfPipelines()[0]
	fields := r.fields()
	for i, f := range fields {
		switch {
		case f.Name == pipelineField:
			fields[i].Read = func(v document.Value) { r.file(v, &r.p.Pipeline) }
		case f.Name == "constraints":
			fields[i].Read = func(v document.Value) { r.p.Goal.Constraints = goals.Constraints(v, stages.NoAccuracy) }
		case slices.Contains(stages.NotAtTop(), f.Name):
			fields[i].Read = func(document.Value) {}
		}
	}
	given := root.Mapping(fields, r.misplaced)
	r.checkPipeline(given)
	section, has := given[modelsField]
	if !has {
		given[pipelineField].Fail(document.Error{Problem: "calls no known models: its config.pbtxt has no steps of an ensemble, or was not read",
			Hint: "write models: {NAME: {}, …} with the models that it calls"})
		return Profile{}, d.Err()
	}
	section.Mapping(nil, func(key, v document.Value) bool {
		if m, ok := r.stage(key, v); ok {
			r.p.Models = append(r.p.Models, m)
		}
		return true
	})
	files := make([]stages.File, len(r.p.Models))
	for i, m := range r.p.Models {
		files[i] = stages.File{Stage: m.Name, Path: m.Model.Path}
	}
	stages.CheckFiles(section, files, r.p.Pipeline, MostModels)
	if err := d.Err(); err != nil {
		return Profile{}, err
	}
	p := r.p.defaultedSeveral()
	p.Name = filepath.Base(p.Pipeline)
	if _, has := given["output"]; !has {
		p.Output = document.RelativeTo(p.Path, filepath.Join("out", p.Name))
		for i := range p.Models {
			p.Models[i].Output = p.Output
		}
	}
	return p, nil
}

// checkPipeline reports fields at the top that belong elsewhere, and contradictions.
func (r profileReader) checkPipeline(given map[string]document.Value) {
	stages.CheckTop(given)
	checkObjective(given)
	goals.CheckPrice(given)
	r.checkServers(given)
	if v, has := given[pipelineField]; has && !search.IsModelName(filepath.Base(r.p.Pipeline)) {
		v.Fail(document.Error{Problem: "is not the folder of a model that can be a pipeline", Allowed: "a folder whose name has letters, digits, _ and -"})
	}
	if search, has := given["search"]; has && len(r.p.Search.Earlier) > 0 {
		search.Child("earlier").Fail(document.Error{Problem: "is not supported beside pipeline: no campaign of several models can be reused yet", Hint: "remove the line"})
	}
	if runner, has := given["runner"]; has && r.p.Runner.Mode == RunnerRemote {
		runner.Child("mode").Fail(document.Error{Problem: "is not supported beside pipeline", Allowed: RunnerBundled + ", " + RunnerLocal})
	}
	if load, has := given["load"]; has {
		stages.CheckLoad(load, r.p.Load.Arrivals.HasPeriod(), !r.p.Inputs.Mix.IsZero())
	}
}

// stage reads one stage. The result is a profile of it alone, with no load.
func (r profileReader) stage(key, v document.Value) (Profile, bool) {
	if !IsNameOfSeveral(key) {
		return Profile{}, false
	}
	m := r.newModel(key.Node.Value)
	m.Model.Path = filepath.Join(filepath.Dir(r.p.Pipeline), m.Name)
	m.Model.Libraries.Operators = r.p.Model.Libraries.Operators
	m.Load = search.LoadAxis{BatchSize: r.p.Load.BatchSize}
	m.Accuracy.Unchecked = isUnchecked(v)
	own := profileReader{p: &m}
	before := v.Mistakes()
	fields := own.ownFields()
	for i, f := range fields {
		switch f.Name {
		case "load":
			fields[i].Read = func(v document.Value) { v.Mapping([]document.Field{{Name: "inputs", Read: own.inputs}}, stages.NoLoad) }
		case "constraints":
			fields[i].Read = own.stageConstraints
		}
	}
	if !v.IsNull() {
		given := v.Mapping(fields, misplacedOfModel)
		own.checkSpaceOf(given)
		stages.CheckBatch(given, own.p.Knobs, r.p.Load.BatchSize)
		own.checkAccuracy(given)
	}
	if v.Mistakes() > before {
		return Profile{}, false
	}
	m = m.defaulted()
	m.Path = fmt.Sprintf("%s: %s.%s", r.p.Path, modelsField, m.Name)
	return m, true
}

// stageConstraints reads the limits of a stage. It has one on its accuracy alone: latency and throughput
// are the pipeline's.
func (r profileReader) stageConstraints(v document.Value) {
	for _, c := range goals.Constraints(v, r.accuracyLimit) {
		v.Child(string(c.Metric)).Fail(document.Error{Problem: fmt.Sprintf("limits %s, and a stage has a limit on its accuracy alone", c.Metric),
			Hint: fmt.Sprintf("write constraints: {%s: …} at the top of the file, for the pipeline", c.Metric)})
	}
}
