package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/analyze/imported"
	"tuner/measure"
	"tuner/report/formats"
	"tuner/search"
	"tuner/spec"
)

// runImport ranks another program's measurements, of each model in the file. Without --export-path nothing but the table is written.
func runImport(ctx context.Context, con console, o analyzeOptions) error {
	switch {
	case o.input != "":
		return usageErrorf("--import and --input contradict each other: the one names another program's measurements, the other a campaign of tuner's")
	case o.explain:
		return usageErrorf("--import and --explain contradict each other: another program's figures do not tell what limits a configuration")
	}
	var asked []spec.Analyze
	if o.file != "" {
		var err error
		if asked, _, err = readAnalyses(ctx, con, o); err != nil {
			return err
		}
	}
	list, notes, err := imported.Read(o.imported)
	if errors.Is(err, fs.ErrNotExist) {
		return usageErrorf("%v", err)
	}
	if err != nil {
		return withExit(exitUsage, err)
	}
	for _, note := range notes {
		fmt.Fprintln(con.err, "warning: "+note)
	}
	var infeasible error
	isAsked := false
	for _, recording := range list {
		a, ok := importGoal(asked, recording.Model)
		if !ok {
			continue // the file asks for other models
		}
		isAsked = true
		err := importOne(con, o, a, recording, len(list) > 1)
		if err != nil && exitCode(err) != exitInfeasible {
			return err
		}
		infeasible = errors.Join(infeasible, err)
	}
	if !isAsked {
		return otherModels(o, asked, list)
	}
	return infeasible
}

// otherModels says that a file asks for none of the models that were measured.
func otherModels(o analyzeOptions, asked []spec.Analyze, list []analyze.Recording) error {
	var wanted, measured []string
	for _, a := range asked {
		wanted = append(wanted, filepath.Base(a.Input))
	}
	for _, recording := range list {
		measured = append(measured, recording.Model)
	}
	return usageErrorf("%s asks for %s, and %s has measurements of %s; name these in the file", o.file, strings.Join(wanted, ", "), o.imported, strings.Join(measured, ", "))
}

// importGoal finds what a file asks of a model: that of the campaign whose folder has the model's name, or the only one unless that names
// configurations, which are of one model. Without a file it is the highest throughput.
func importGoal(asked []spec.Analyze, model string) (spec.Analyze, bool) {
	i := slices.IndexFunc(asked, func(a spec.Analyze) bool { return filepath.Base(a.Input) == model })
	switch {
	case len(asked) == 0:
		a, err := spec.ParseAnalyze("--import", []byte("input: .\n"), formats.All().Words())
		return a, err == nil
	case i >= 0:
		return asked[i], true
	case len(asked) == 1 && asked[0].Configs == nil:
		return asked[0], true
	}
	return spec.Analyze{}, false
}

// importOne ranks what was measured of one model, and delivers the result.
func importOne(con console, o analyzeOptions, a spec.Analyze, recording analyze.Recording, isOneOfSeveral bool) error {
	a, err := a.With(o.overrides)
	if err != nil {
		return withExit(exitUsage, err)
	}
	throughput := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}}
	goal, err := a.Goal(throughput)
	if err != nil {
		return withExit(exitUsage, err)
	}
	result, err := recording.Rank(goal, rankOptions(a, goal))
	if err != nil {
		return rankError(err)
	}
	if a.Configs != nil {
		var unknown []string
		if result, unknown = result.Only(a.Configs); len(unknown) > 0 {
			return usageErrorf("%s: report_model_configs: %s has no configuration %s", a.Path, recording.Source, strings.Join(unknown, ", "))
		}
	}
	// There is no model to deploy; a configuration only where the recording has one.
	isKnown := slices.ContainsFunc(recording.Configs, func(c analyze.RecordedConfig) bool { return c.Deployed.GetName() != "" })
	a.Formats = slices.DeleteFunc(slices.Clone(a.Formats), func(f string) bool {
		return f == spec.FormatRepository || f == spec.FormatConfig && !isKnown
	})
	if o.foreign.export == "" {
		if err := printResult(con.out, o, a.Formats, result); err != nil {
			return err
		}
		fmt.Fprintln(con.err, "nothing is written: --export-path FOLDER names where the results shall be")
		return infeasible(result)
	}
	a.Output, a.Shared = o.foreign.export, true
	if isOneOfSeveral {
		a.Output = filepath.Join(a.Output, recording.Model)
	}
	return deliver(con, o, a, result)
}
