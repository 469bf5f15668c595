package main

import (
	"context"
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
	"tuner/spec/modelanalyzer"
)

// analyzeOptions are the flags of `tuner analyze`.
type analyzeOptions struct {
	file     string
	input    string
	imported string
	output   string // text, json, or none after a campaign
	explain  bool
	foreign  foreignFlags
}

func newAnalyze(con console) *cobra.Command {
	var o analyzeOptions
	cmd := verb(&cobra.Command{
		Use:     "analyze -f analyze.yaml",
		Aliases: []string{"report"},
		Short:   "Rank what was measured under constraints and write the results",
		Long: `Reads a campaign's journal, ranks the configurations under the constraints, prints the table, and writes CSV, charts, the
optimal config.pbtxt and a deployable model repository into the output folder. It measures nothing: constraints and objective may
be changed and the analysis repeated at will, also while the campaign is running.

The file may be one of Triton Model Analyzer, as it is, also one of its report (docs/model_analyzer.md). --import ranks what other programs
measured: a checkpoint of Model Analyzer, or perf_analyzer's CSV or output.`,
		Example: "  tuner analyze -f analyze.yaml\n  tuner analyze --input out/minilm --explain\n  tuner analyze --import checkpoints/0.ckpt -e results",
		Args:    usageArgs(fileByFlag),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runAnalyze(cmd.Context(), con, o) },
	})
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "what to make of the results (docs/formats/analyze.md), or Model Analyzer's file")
	cmd.Flags().StringVar(&o.input, "input", "", "the campaign's output folder, in place of a file")
	cmd.Flags().StringVar(&o.imported, "import", "", "another program's measurements: checkpoint or folder of them, CSV, output; with -f the goal is that file's")
	cmd.Flags().StringVar(&o.output, "output", "text", "on stdout: text (the table) or json (the result)")
	cmd.Flags().BoolVar(&o.explain, "explain", false, "print why the best is the best: what limits it, which knob matters, what was not tried (json has it anyhow)")
	addForeignFlags(cmd, &o.foreign)
	return cmd
}

func runAnalyze(ctx context.Context, con console, o analyzeOptions) error {
	if err := checkOutputFormat(o.output); err != nil {
		return err
	}
	if o.imported != "" {
		return runImport(ctx, con, o)
	}
	list, joint, err := readAnalyses(ctx, con, o)
	if err != nil {
		return err
	}
	var infeasible error
	for _, a := range list {
		err := analyzeOne(con, o, a)
		if err != nil && exitCode(err) != exitInfeasible {
			return err
		}
		infeasible = errors.Join(infeasible, err)
	}
	if joint != "" {
		if err := joinResults(con, joint, list); err != nil {
			return err
		}
	}
	return infeasible
}

// analyzeOne ranks one campaign and writes its results.
func analyzeOne(con console, o analyzeOptions, a spec.Analyze) error {
	campaign, err := analyze.Replay(a.Input)
	if errors.Is(err, fs.ErrNotExist) {
		return usageErrorf("no campaign in %q: run 'tuner profile' first, or name its output folder%s", a.Input, importHint(a.Input))
	}
	if err != nil {
		return withExit(exitUsage, err)
	}
	goal, err := a.Goal(campaign.Profile.Goal)
	if err != nil {
		return withExit(exitUsage, err)
	}
	result, err := analyze.Analyze(campaign, analyze.Options{Goal: &goal, Top: a.Top})
	if err != nil {
		return err
	}
	if a.Configs != nil {
		var unknown []string
		if result, unknown = result.Only(a.Configs); len(unknown) > 0 {
			return usageErrorf("%s: report_model_configs: the campaign in %q has no configuration %s", a.Path, a.Input, strings.Join(unknown, ", "))
		}
	}
	result.CSV = a.CSV
	return deliver(con, o, a, result)
}

// importHint names the checkpoint of Model Analyzer beside a campaign that is not there.
func importHint(input string) string {
	dir := filepath.Dir(input)
	if files, err := filepath.Glob(filepath.Join(dir, "*.ckpt")); err != nil || len(files) == 0 {
		return ""
	}
	return fmt.Sprintf("; what Model Analyzer itself measured is read with --import %s", dir)
}

// deliver prints a result and writes its files.
func deliver(con console, o analyzeOptions, a spec.Analyze, result analyze.Result) error {
	if err := printResult(con.out, o, a.Formats, result); err != nil {
		return err
	}
	write := report.WriteAll
	if a.Shared {
		write = report.WriteShared
	}
	written, err := write(a.Output, result, a.Formats)
	if err != nil {
		return inputError(err)
	}
	listFiles(con.err, a.Output, written)
	return infeasible(result)
}

// readAnalyses reads the analyze file, whichever it is, or stands in for one when only --input is given. joint is the folder of the results
// of all models together, "" for a single one.
func readAnalyses(ctx context.Context, con console, o analyzeOptions) (list []spec.Analyze, joint string, err error) {
	switch {
	case o.file == "" && o.input == "":
		return nil, "", usageErrorf("nothing to analyze: use -f analyze.yaml, or --input with a campaign's output folder")
	case o.file != "" && o.input != "":
		return nil, "", usageErrorf("-f and --input contradict each other: the file names its own input")
	case o.file == "":
		if err := o.foreign.refuse(); err != nil {
			return nil, "", err
		}
		a, err := spec.ParseAnalyze("--input", []byte(fmt.Sprintf("input: %q\n", o.input)))
		return []spec.Analyze{a}, "", withExit(exitUsage, err)
	}
	text, err := os.ReadFile(o.file)
	if err != nil {
		return nil, "", usageErrorf("cannot read %s: %v", o.file, err)
	}
	path := filepath.Clean(o.file)
	if !modelanalyzer.Is(text) {
		if err := o.foreign.refuse(); err != nil && o.imported == "" {
			return nil, "", err
		}
		a, err := spec.ParseAnalyze(path, text)
		return []spec.Analyze{a}, "", withExit(exitUsage, err)
	}
	machine, err := foreignMachine(ctx)
	if err != nil {
		return nil, "", err
	}
	f, err := modelanalyzer.ParseAnalyze(path, text, machine, o.foreign.options())
	warnAll(con, f.Warnings)
	return f.Analyses, f.Joint, withExit(exitUsage, err)
}

// printResult puts the result on stdout: JSON, or the table where the formats include it, and its explanation where that is asked for.
func printResult(out io.Writer, o analyzeOptions, formats []string, r analyze.Result) error {
	switch o.output {
	case "json":
		return report.WriteJSON(out, r)
	case "none":
		return nil
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
