package pipeline

import (
	"context"
	"fmt"
	"strings"

	"tuner/analyze"
	"tuner/internal/checksum"
	"tuner/internal/exit"
	"tuner/pipeline/steps"
	"tuner/profile/campaign"
	"tuner/report"
	"tuner/report/formats"
	"tuner/report/markdown"
	"tuner/spec"
)

// repository makes the sixth step: the optimal configuration and the repository, if analyze.yaml
// asks for them.
func (j job) repository(ctx context.Context, r analyze.Result) error {
	best, found := r.Winner()
	var config strings.Builder
	if found {
		if err := report.WriteConfig(&config, r); err != nil {
			return err
		}
	}
	file, _ := r.Header.File(best.Setup.Precision)
	key, err := digestOf(config.String(), file.SHA256, j.analysis.Formats, j.analysis.Output)
	if err != nil {
		return err
	}
	return j.log.Do(ctx, steps.Repository, key, func() (steps.Outcome, error) {
		written, err := formats.All().WriteOptimum(j.analysis.Output, r, j.analysis.Formats)
		switch {
		case err != nil:
			return steps.Outcome{}, exit.OfFiles(err)
		case !found: // an earlier one was removed
			return steps.Skip("%s", unfoundText(r)), nil
		case len(written) == 0:
			return steps.Skip("analyze.yaml leaves it out (formats)"), nil
		}
		return steps.Outcome{Text: fmt.Sprintf("%s: %s", written[len(written)-1], best.Candidate.Describe()), Files: written}, nil
	})
}

// writeReports writes the charts, tables and reports of a result, with the current steps.
func writeReports(a spec.Analyze, r analyze.Result, version string, log *steps.Log) error {
	key, err := reportKey(r, a, version)
	if err != nil {
		return err
	}
	return log.Report(key, func() ([]string, error) {
		written, err := formats.All().WriteReports(a.Output, r, a.Formats)
		return written, exit.OfFiles(err)
	})
}

// reportFailure writes the reports of a failed run: about the measurements, or else about the steps
// only.
func reportFailure(a spec.Analyze, model, version string, log *steps.Log) error {
	if !campaign.Exists(a.Input) {
		return exit.OfFiles(markdown.WriteSteps(a.Output, model, log.List()))
	}
	r, err := analyze.RankFile(a)
	if err != nil { // it is the failure itself, or a consequence
		return nil
	}
	r.Steps = log.List()
	return writeReports(a, r, version, log)
}

// reportKey returns the digest of everything that reports depend on: the trials, the goal and the
// views, and the steps.
func reportKey(r analyze.Result, a spec.Analyze, version string) (string, error) {
	trials, err := campaign.Digest(a.Input)
	if err != nil {
		return "", exit.With(exit.Usage, err)
	}
	parts := []any{trials, r.Goal, a, r.Ending, version}
	for _, s := range r.Steps {
		parts = append(parts, []string{string(s.Name), string(s.State), s.Text})
	}
	return digestOf(parts...)
}

// digestOf returns the digest of values that can be encoded as JSON.
func digestOf(values ...any) (string, error) {
	sum, err := checksum.OfJSON(values)
	if err != nil {
		return "", fmt.Errorf("cannot compute a digest: %w", err)
	}
	return sum, nil
}
