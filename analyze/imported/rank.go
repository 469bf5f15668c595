package imported

import (
	"path/filepath"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/exit"
	"tuner/measure"
	"tuner/search"
	"tuner/spec"
)

// GoalOf finds the analyze file for a model. It is the file whose campaign folder has the model's
// name. A single file serves every model, unless it names configurations, since these belong to one
// model. Without a file the goal is the highest throughput, and the result gets the default formats
// that can be written.
func GoalOf(asked []spec.Analyze, model string, formats []string) (spec.Analyze, bool) {
	i := slices.IndexFunc(asked, func(a spec.Analyze) bool { return filepath.Base(a.Input) == model })
	switch {
	case len(asked) == 0:
		a, err := spec.ParseAnalyze("--import", []byte("input: .\n"), formats)
		return a, err == nil
	case i >= 0:
		return asked[i], true
	case len(asked) == 1 && asked[0].Configs == nil:
		return asked[0], true
	}
	return spec.Analyze{}, false
}

// OtherModels returns an error if a file asks for a model and none of those was measured.
func OtherModels(file, source string, asked []spec.Analyze, list []analyze.Recording) error {
	var wanted, measured []string
	for _, a := range asked {
		wanted = append(wanted, filepath.Base(a.Input))
	}
	for _, recording := range list {
		measured = append(measured, recording.Model)
	}
	return exit.Usagef("%s asks for %s, but %s has measurements of %s; name these models in the file", file, strings.Join(wanted, ", "), source, strings.Join(measured, ", "))
}

// Rank ranks the measurements of one model by an analyze file. It returns that file with the
// formats that can be written: a recording has no model to deploy, and not always a configuration.
func Rank(a spec.Analyze, recording analyze.Recording) (analyze.Result, spec.Analyze, error) {
	throughput := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}}
	goal, err := a.Goal(throughput, nil)
	if err != nil {
		return analyze.Result{}, a, exit.With(exit.Usage, err)
	}
	result, err := recording.Rank(goal, analyze.OptionsOf(a, goal))
	if err == nil {
		result, err = result.OnlyAsked(a, recording.Source)
	}
	if err != nil {
		return analyze.Result{}, a, analyze.UsageOf(err)
	}
	isKnown := slices.ContainsFunc(recording.Configs, func(c analyze.RecordedConfig) bool { return c.Deployed.GetName() != "" })
	a.Formats = slices.DeleteFunc(slices.Clone(a.Formats), func(f string) bool {
		return f == spec.FormatRepository || f == spec.FormatConfig && !isKnown
	})
	return result, a, nil
}
