package pipeline

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/export"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/pipeline/steps"
	"tuner/profile/campaign"
	"tuner/report/formats"
	"tuner/spec"
	"tuner/spec/draft"
)

// chartDir is the folder of the chart's export in the output folder.
const chartDir = "helm"

// chart makes the seventh step: the repository as a Helm chart, if analyze.yaml asks for it.
func (j job) chart(ctx context.Context, r analyze.Result) error {
	options := j.Chart // the chart stays beside the repository and shares its files
	options.Inputs, options.ShareFiles = []string{j.analysis.Output}, true
	wanted := slices.Contains(j.analysis.Formats, spec.FormatHelm)
	key, err := j.chartKey(r, options, wanted)
	if err != nil {
		return err
	}
	return j.log.Do(ctx, steps.Chart, key, func() (steps.Outcome, error) {
		dir := filepath.Join(j.analysis.Output, chartDir)
		_, found := r.Winner()
		switch {
		case !wanted:
			return steps.Skip("%s leaves it out (formats: %s)", draft.AnalyzeName, spec.FormatHelm), nil
		case !found: // an earlier chart is removed, like the repository
			return steps.Skip("%s", unfoundText(r)), removeChart(dir)
		}
		return j.writeChart(dir, r, options)
	})
}

// chartKey returns the digest of everything that the chart depends on: trials, goal and views, the
// repository, and the options.
func (j job) chartKey(r analyze.Result, o export.Options, wanted bool) (string, error) {
	trials, err := campaign.Digest(j.analysis.Input)
	if err != nil {
		return "", exit.With(exit.Usage, err)
	}
	repository, _ := j.log.List().Get(steps.Repository)
	return digestOf(trials, r.Goal, j.analysis.Mode, j.analysis.Rank, j.analysis.At, repository.Key, repository.Files, o, wanted, j.Version)
}

// writeChart writes the result into the output folder, from which it is exported. The chart's
// folder is written completely or not at all.
func (j job) writeChart(dir string, r analyze.Result, o export.Options) (steps.Outcome, error) {
	if err := checkChart(dir); err != nil {
		return steps.Outcome{}, err
	}
	r.Steps = j.log.List()
	if _, err := formats.All().WriteReports(j.analysis.Output, r, nil); err != nil {
		return steps.Outcome{}, exit.OfFiles(err)
	}
	var e export.Export
	err := durable.InFolder(j.analysis.Output, func(temp string) (err error) {
		fresh := filepath.Join(temp, chartDir)
		if e, err = export.Write(export.Helm, fresh, o); err != nil {
			return err
		}
		if err := writeReceipt(fresh); err != nil {
			return fmt.Errorf("cannot write the chart %q: %w", dir, durable.Cause(err))
		}
		// The old folder is removed as a whole, so that a crash cannot leave a part of it without
		// its receipt.
		return durable.Swap(fresh, dir, filepath.Join(temp, "old"))
	})
	if err != nil {
		return steps.Outcome{}, exit.OfFiles(err)
	}
	return steps.Outcome{Text: chartText(dir, e.Deployment), Files: []string{dir}}, nil
}

// chartText describes the resources that a chart requests from a cluster, with the notes of the
// export.
func chartText(dir string, d export.Deployment) string {
	text := fmt.Sprintf("%s: %s for %s", filepath.Join(dir, "chart"), d.ResourcesText(), d.Image)
	parts := []string{text}
	for _, note := range d.Notes {
		parts = append(parts, strings.TrimSuffix(note, "."))
	}
	return strings.Join(parts, "; ")
}

// checkChart refuses to replace a chart that was edited after a run wrote it, or that no run wrote.
func checkChart(dir string) error {
	why, err := foreignIn(dir)
	if err != nil || why == "" {
		return err
	}
	return exit.Usagef("cannot replace or remove the chart %q: %s; move it away, or leave %s out of the formats in %s", dir, why, spec.FormatHelm, draft.AnalyzeName)
}

// NoteOldChart prints a note if the chart in an output folder belongs to another result. The last
// run left it there. `tuner analyze` writes a new repository but no chart.
func NoteOldChart(out io.Writer, output string, r analyze.Result) {
	m, err := export.ReadManifest(filepath.Join(output, chartDir))
	if err != nil {
		return // there is no chart
	}
	best, found := r.Winner()
	if found && m.Models[0].Configuration == best.Name && m.Models[0].Load == best.Best.Load {
		return
	}
	fmt.Fprintf(out, "the chart in %s belongs to the last 'tuner run', and not to this result: 'tuner export helm' writes one\n", filepath.Join(output, chartDir))
}

// removeChart removes the chart of an earlier run.
func removeChart(dir string) error {
	if err := checkChart(dir); err != nil {
		return err
	}
	return removeFolder(dir)
}
