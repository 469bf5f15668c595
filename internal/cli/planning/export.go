package planning

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"tuner/analyze"
	"tuner/capacity"
	"tuner/capacity/replica"
	"tuner/export"
	"tuner/export/tuned"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/measure"
	"tuner/report"
	"tuner/report/formats"
	"tuner/report/result"
)

// Export exports what a plan chose from a campaign's folder. Where that is not the configuration whose
// repository the folder has, it makes that configuration's own, from the measured model.
func Export(target, dir, file string, o export.Options) (export.Export, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return export.Export{}, exit.Usagef("cannot read plan %q: %w", file, durable.Cause(err))
	}
	p, err := capacity.ParsePlan(file, text)
	if err != nil {
		return export.Export{}, exit.With(exit.Usage, err)
	}
	o.Plan = &p
	if len(o.Inputs) != 1 {
		return export.Write(target, dir, o) // refused there
	}
	results, err := readResults(o.Inputs)
	if err != nil {
		return export.Export{}, exit.With(exit.Usage, err)
	}
	if results[0].result.Model == p.Model && !isOf(p, results[0]) {
		return export.Export{}, exit.Usagef("--plan: %s is for %s of the result %q (%s), and that of %s is another one; name the folder of the plan's result, or plan again for this one",
			file, p.Best.Configuration, p.Best.Type, p.Best.Setup, results[0].path)
	}
	if r := results[0].result; r.Model != p.Model || r.Best == p.Best.Configuration {
		return export.Write(target, dir, o)
	}
	temp, err := os.MkdirTemp("", "tuner-export-")
	if err != nil {
		return export.Export{}, fmt.Errorf("cannot make a folder for the model repository: %w", err)
	}
	defer os.RemoveAll(temp)
	if err := writeConfiguration(temp, o.Inputs[0], p.Best.Configuration); err != nil {
		return export.Export{}, err
	}
	o.Chosen = &tuned.Chosen{Configuration: p.Best.Configuration, Repository: temp}
	return export.Write(target, dir, o)
}

// isOf reports whether a plan is of a result: the chosen configuration has the figures of the plan
// there, or its setup under the result's name. Each campaign numbers its configurations, so
// config_5 of another one is another configuration. A campaign that was resumed has other figures,
// and a folder that was moved has another name.
func isOf(p capacity.Plan, r named) bool {
	for _, c := range r.result.Configurations {
		if c.Name == p.Best.Configuration {
			return hasFigures(p, c) || r.isCalled(p.Best.Type) && replica.SetupText(c.Setup) == p.Best.Setup
		}
	}
	return false
}

// hasFigures reports whether a configuration has the figures that a plan of it was made of.
func hasFigures(p capacity.Plan, c result.Configuration) bool {
	same := func(x capacity.Candidate) bool { return x.Type == p.Best.Type && x.Configuration == c.Name }
	i := slices.IndexFunc(p.Configurations, same)
	if i < 0 {
		return false
	}
	for _, check := range p.Configurations[i].Checks {
		has := func(x result.Point) bool {
			return x.Load == check.Load && capacity.Significant(x.Values[measure.LatencyP99].Value) == check.Measured
		}
		if !slices.ContainsFunc(c.Points, has) {
			return false
		}
	}
	return len(p.Configurations[i].Checks) > 0
}

// isCalled reports whether a plan calls the result by a name.
func (r named) isCalled(name string) bool {
	file, err := filepath.Abs(name)
	return name == r.name || err == nil && (file == r.file || filepath.Join(file, result.FileName) == r.file)
}

// writeConfiguration writes a repository with a configuration of the campaign in a folder.
func writeConfiguration(dir, campaign, name string) error {
	ranked, err := analyze.RankFolder(campaign, formats.All().Words())
	if err != nil {
		return err
	}
	if len(ranked.Served()) > 0 {
		return exit.With(exit.Usage, errors.New("the campaign is of several models, and a plan is of one"))
	}
	return exit.With(exit.Usage, report.WriteConfiguration(dir, ranked, name))
}
