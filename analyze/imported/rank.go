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

// GoalOf finds the analyze file that counts for a model: the one of the campaign whose folder has the model's name, or the
// only one unless that names configurations, which belong to one model. Without a file the goal is the highest throughput, and
// results have the default formats among those that there are.
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

// OtherModels is the error where a file asks for none of the models that were measured.
func OtherModels(file, source string, asked []spec.Analyze, list []analyze.Recording) error {
	var wanted, measured []string
	for _, a := range asked {
		wanted = append(wanted, filepath.Base(a.Input))
	}
	for _, recording := range list {
		measured = append(measured, recording.Model)
	}
	return exit.Usagef("%s asks for %s, and %s has measurements of %s; name these in the file", file, strings.Join(wanted, ", "), source, strings.Join(measured, ", "))
}

// Rank ranks the measurements of one model by an analyze file, which it returns with the formats that can be written: there
// is no model to deploy, and a configuration only where the recording has one.
func Rank(a spec.Analyze, recording analyze.Recording) (analyze.Result, spec.Analyze, error) {
	throughput := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}}
	goal, err := a.Goal(throughput)
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
