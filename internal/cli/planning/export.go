package planning

import (
	"errors"
	"fmt"
	"os"

	"tuner/analyze"
	"tuner/capacity"
	"tuner/export"
	"tuner/export/tuned"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/report"
	"tuner/report/formats"
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
