package analyze

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"tuner/internal/exit"
	"tuner/search"
	"tuner/search/verdict"
	"tuner/spec"
)

// RankFile replays the campaign that an analyze file names, and ranks its configurations.
func RankFile(a spec.Analyze) (Result, error) {
	campaign, err := Replay(a.Input)
	if errors.Is(err, fs.ErrNotExist) {
		return Result{}, exit.Usagef("no campaign in %q: run 'tuner profile' first, or name its output folder%s", a.Input, importHint(a.Input))
	}
	if err != nil {
		return Result{}, exit.With(exit.Usage, err)
	}
	goal, err := a.Goal(campaign.Profile.Goal, campaign.Profile.OwnTraffic())
	if err != nil {
		return Result{}, exit.With(exit.Usage, err)
	}
	result, err := Analyze(campaign, OptionsOf(a, goal))
	if err != nil {
		return Result{}, UsageOf(err)
	}
	result.Folder = a.Input
	return result.OnlyAsked(a, fmt.Sprintf("the campaign in %q", a.Input))
}

// RankFolder ranks the configurations of the campaign in an output folder, as an analyze file that asks
// for nothing else does. formats are the known report formats.
func RankFolder(dir string, formats []string) (Result, error) {
	a, err := spec.AnalyzeOf(dir, formats)
	if err != nil {
		return Result{}, err
	}
	return RankFile(a)
}

// importHint returns a hint if the folder of a missing campaign has a checkpoint of Model Analyzer.
func importHint(input string) string {
	dir := filepath.Dir(input)
	if files, err := filepath.Glob(filepath.Join(dir, "*.ckpt")); err != nil || len(files) == 0 {
		return ""
	}
	return fmt.Sprintf("; read Model Analyzer's own measurements with --import %s", dir)
}

// OptionsOf returns the options that an analyze file asks for.
func OptionsOf(a spec.Analyze, goal search.Goal) Options {
	return Options{Goal: &goal, Top: a.Top, Confidence: a.Confidence, Rank: a.Rank, At: a.ComparedAt(), CSV: a.CSV, Plots: a.Plots}
}

// UsageOf turns two errors into usage errors: a load that was not measured, and an objective whose
// metrics were not measured.
func UsageOf(err error) error {
	load, objective := new(LoadError), new(ObjectiveError)
	if errors.As(err, &load) || errors.As(err, &objective) {
		return exit.With(exit.Usage, err)
	}
	return err
}

// OnlyAsked keeps the configurations that an analyze file names, or all if it names none. source is
// what was measured, for the message about an unknown name.
func (r Result) OnlyAsked(a spec.Analyze, source string) (Result, error) {
	if a.Configs == nil {
		return r, nil
	}
	only, unknown := r.Only(a.Configs)
	if len(unknown) > 0 {
		return Result{}, exit.Usagef("%s: report_model_configs: %s has no configuration %s", a.Path, source, strings.Join(unknown, ", "))
	}
	return only, nil
}

// Unmet returns the error of exit code 5. It says which constraint the nearest configuration
// misses, and by how much, or why it cannot win although it misses none. It is nil if a configuration satisfies all constraints.
func (r Result) Unmet() error {
	if _, ok := r.Winner(); ok {
		return nil
	}
	nearest, ok := r.Nearest()
	if !ok {
		return exit.With(exit.Infeasible, errors.New("nothing satisfies the constraints: no configuration could be measured"))
	}
	var misses []string
	for _, m := range nearest.Best.Misses {
		misses = append(misses, m.String())
	}
	what := "nothing"
	if r.Verdict.State == verdict.Unfinished {
		what = "no measured configuration"
	}
	return exit.With(exit.Infeasible, fmt.Errorf("%s satisfies the constraints; the nearest is %s at %s: %s",
		what, nearest.Candidate.Describe(), nearest.Best.Load, cmp.Or(strings.Join(misses, ", and "), nearest.Shortfall())))
}
