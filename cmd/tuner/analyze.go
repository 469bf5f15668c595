package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tuner/analyze"
	"tuner/report"
	"tuner/spec"
)

// analyzeOptions are the flags of `tuner analyze`.
type analyzeOptions struct {
	file    string
	input   string
	output  string
	explain bool
}

func newAnalyze(con console) *cobra.Command {
	var o analyzeOptions
	cmd := verb(&cobra.Command{
		Use:   "analyze -f analyze.yaml",
		Short: "Rank what was measured under constraints and write the results",
		Long: `Reads a campaign's journal, ranks the configurations under the constraints, prints the table, and writes CSV, charts, a page for
the browser (report.html), the optimal config.pbtxt and a deployable model repository into the output folder. It measures nothing:
constraints and objective may be changed and the analysis repeated at will, also while the campaign is running.`,
		Example: "  tuner analyze -f analyze.yaml\n  tuner analyze --input out/minilm --explain",
		Args:    usageArgs(fileByFlag),
		RunE:    func(*cobra.Command, []string) error { return runAnalyze(con, o) },
	})
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "what to make of the results (docs/formats/analyze.md)")
	cmd.Flags().StringVar(&o.input, "input", "", "the campaign's output folder, in place of a file")
	cmd.Flags().StringVar(&o.output, "output", "text", "on stdout: text (the table) or json (the result)")
	cmd.Flags().BoolVar(&o.explain, "explain", false, "print why the best is the best: what limits it, which knob matters, what was not tried (json has it anyhow)")
	return cmd
}

func runAnalyze(con console, o analyzeOptions) error {
	if err := checkOutputFormat(o.output); err != nil {
		return err
	}
	a, err := readAnalyze(o)
	if err != nil {
		return err
	}
	result, err := rankCampaign(a)
	if err != nil {
		return err
	}
	if err := printResult(con.out, o, a.Formats, result); err != nil {
		return err
	}
	written, err := report.WriteAll(a.Output, result, a.Formats)
	if err != nil {
		return inputError(err)
	}
	listFiles(con.err, a.Output, written)
	return infeasible(result)
}

// rankCampaign replays the campaign that an analyze file names, and ranks what it measured.
func rankCampaign(a spec.Analyze) (analyze.Result, error) {
	campaign, err := analyze.Replay(a.Input)
	if errors.Is(err, fs.ErrNotExist) {
		return analyze.Result{}, usageErrorf("no campaign in %q: run 'tuner profile' first, or name its output folder", a.Input)
	}
	if err != nil {
		return analyze.Result{}, withExit(exitUsage, err)
	}
	goal, err := a.Goal(campaign.Profile.Goal)
	if err != nil {
		return analyze.Result{}, withExit(exitUsage, err)
	}
	return analyze.Analyze(campaign, analyze.Options{Goal: &goal, Top: a.Top})
}

// readAnalyze reads the analyze file, or stands in for one when only --input is given.
func readAnalyze(o analyzeOptions) (spec.Analyze, error) {
	switch {
	case o.file == "" && o.input == "":
		return spec.Analyze{}, usageErrorf("nothing to analyze: use -f analyze.yaml, or --input with a campaign's output folder")
	case o.file != "" && o.input != "":
		return spec.Analyze{}, usageErrorf("-f and --input contradict each other: the file names its own input")
	case o.file == "":
		a, err := spec.ParseAnalyze("--input", []byte(fmt.Sprintf("input: %q\n", o.input)))
		return a, withExit(exitUsage, err)
	}
	text, err := os.ReadFile(o.file)
	if err != nil {
		return spec.Analyze{}, usageErrorf("cannot read %s: %v", o.file, err)
	}
	a, err := spec.ParseAnalyze(filepath.Clean(o.file), text)
	return a, withExit(exitUsage, err)
}

// printResult puts the result on stdout: JSON, or the table where the formats include it, and its explanation where that is asked for.
func printResult(out io.Writer, o analyzeOptions, formats []string, r analyze.Result) error {
	if o.output == "json" {
		return report.WriteJSON(out, r)
	}
	if slices.Contains(formats, spec.FormatTable) {
		if err := report.WriteTable(out, r); err != nil || !o.explain {
			return err
		}
		fmt.Fprintln(out)
	}
	if !o.explain {
		return nil
	}
	return report.WriteExplanation(out, r)
}

// listFiles says where the results are.
func listFiles(out io.Writer, dir string, written []string) {
	fmt.Fprintf(out, "\nwritten to %s:\n", dir)
	for _, path := range written {
		if relative, err := filepath.Rel(dir, path); err == nil {
			path = relative
		}
		fmt.Fprintf(out, "  %s\n", path)
	}
}

// infeasible is the error of exit code 5: which constraint the nearest configuration misses, and by how much.
func infeasible(r analyze.Result) error {
	if _, ok := r.Winner(); ok {
		return nil
	}
	nearest, ok := r.Nearest()
	if !ok {
		return withExit(exitInfeasible, errors.New("nothing satisfies the constraints: no configuration could be measured"))
	}
	misses := make([]string, len(nearest.Best.Misses))
	for i, m := range nearest.Best.Misses {
		misses[i] = m.String()
	}
	return withExit(exitInfeasible, fmt.Errorf("nothing satisfies the constraints; nearest is %s at %s: %s",
		nearest.Candidate.Describe(), nearest.Best.Load, strings.Join(misses, ", and ")))
}
