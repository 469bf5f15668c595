package cli

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
	"golang.org/x/term"

	"tuner/analyze"
	"tuner/internal/terminal"
	"tuner/report/formats"
	"tuner/report/text"
	"tuner/search"
	"tuner/search/verdict"
	"tuner/spec"
	"tuner/spec/modelanalyzer"
)

// analyzeOptions are the flags of `tuner analyze`.
type analyzeOptions struct {
	file      string
	input     string
	imported  string
	output    string // text, json, csv, markdown, or none after a campaign
	explain   bool
	overrides spec.Overrides
	foreign   foreignFlags
}

func newAnalyze(con console) *cobra.Command {
	var o analyzeOptions
	cmd := verb(&cobra.Command{
		Use:     "analyze -f analyze.yaml",
		Aliases: []string{"report"},
		Short:   "Rank what was measured under constraints and write the results",
		Long: `Reads a campaign's journal, ranks the configurations under the constraints, prints the table, and writes CSV, charts, a page for
the browser (report.html), the optimal config.pbtxt and a deployable model repository into the output folder. It measures nothing:
constraints, objective and the load to compare at may be changed and the analysis repeated at will, also while the campaign is running.

The file may be one of Triton Model Analyzer, as it is, also one of its report (docs/reference/model_analyzer.md). --import ranks what other programs
measured: a checkpoint of Model Analyzer, or perf_analyzer's CSV or output.

'formats' in the file chooses among: ` + strings.Join(formats.All().Words(), ", ") + `. report.md and result.json are always written.`,
		Example: "  tuner analyze -f analyze.yaml\n  tuner analyze --input out/minilm --explain\n  tuner analyze --input out/minilm --at concurrency=8\n" +
			"  tuner analyze --input out/minilm --mode online\n  tuner analyze --import checkpoints/0.ckpt -e results",
		Args: usageArgs(fileByFlag),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("top") && o.overrides.Top < 1 {
				return usageErrorf("--top %d: must be a whole number from 1", o.overrides.Top)
			}
			if cmd.Flags().Changed("confidence") && !spec.IsConfidence(o.overrides.Confidence) {
				return usageErrorf("--confidence %g: must be a probability between 0.5 and 1, such as 0.9", o.overrides.Confidence)
			}
			return runAnalyze(cmd.Context(), con, o)
		},
	})
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "what to make of the results (docs/reference/analyze.md), or Model Analyzer's file")
	cmd.Flags().StringVar(&o.input, "input", "", "the campaign's output folder, in place of a file")
	cmd.Flags().StringVar(&o.imported, "import", "", "another program's measurements: checkpoint or folder of them, CSV, output; with -f the goal is that file's")
	o.foreign.add(cmd.Flags())
	cmd.Flags().StringVar(&o.output, "output", "text", "on stdout: "+formats.All().StdoutHelp())
	cmd.Flags().BoolVar(&o.explain, "explain", false, "print why the best is the best: what limits it, which knob matters, what was not tried (json and markdown have it anyhow)")
	cmd.Flags().StringVar(&o.overrides.Mode, "mode", "", "what serving is for: online (latency first, at the lowest load) or offline (throughput, whatever the latency); in place of the profile's goal")
	cmd.Flags().StringVar(&o.overrides.At, "at", "", "compare all at one load, such as concurrency=8, request_rate=200 or lowest; or best (each at its best), or each (every load by itself too)")
	cmd.Flags().StringVar(&o.overrides.Rank, "rank", "", "by the score of the best load (score), or by the mean of the three highest throughputs (top3-mean)")
	cmd.Flags().Float64Var(&o.overrides.Confidence, "confidence", 0, "the probability with which limits must hold, such as 0.9, in place of the profile's (default 0.95)")
	cmd.Flags().IntVar(&o.overrides.Top, "top", 0, "how many configurations tables and charts bring out, beside the default (default 3)")
	return cmd
}

func runAnalyze(ctx context.Context, con console, o analyzeOptions) error {
	if err := checkOutputWord(o.output, formats.All().StdoutWords()); err != nil {
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
	a, err := a.With(o.overrides)
	if err != nil {
		return withExit(exitUsage, err)
	}
	result, err := rankCampaign(a)
	if err != nil {
		return err
	}
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
	write := formats.All().WriteAll
	if a.Shared {
		write = formats.All().WriteShared
	}
	written, err := write(a.Output, result, a.Formats)
	if err != nil {
		return inputError(err)
	}
	listFiles(con.err, a.Output, written)
	noteOldChart(con.err, a.Output, result)
	return infeasible(result)
}

// rankCampaign replays the campaign that an analyze file names, and ranks what it measured.
func rankCampaign(a spec.Analyze) (analyze.Result, error) {
	campaign, err := analyze.Replay(a.Input)
	if errors.Is(err, fs.ErrNotExist) {
		return analyze.Result{}, usageErrorf("no campaign in %q: run 'tuner profile' first, or name its output folder%s", a.Input, importHint(a.Input))
	}
	if err != nil {
		return analyze.Result{}, withExit(exitUsage, err)
	}
	goal, err := a.Goal(campaign.Profile.Goal)
	if err != nil {
		return analyze.Result{}, withExit(exitUsage, err)
	}
	result, err := analyze.Analyze(campaign, rankOptions(a, goal))
	if err != nil {
		return analyze.Result{}, rankError(err)
	}
	if a.Configs == nil {
		return result, nil
	}
	result, unknown := result.Only(a.Configs)
	if len(unknown) > 0 {
		return analyze.Result{}, usageErrorf("%s: report_model_configs: the campaign in %q has no configuration %s", a.Path, a.Input, strings.Join(unknown, ", "))
	}
	return result, nil
}

// rankOptions say how an analyze file wants results to be ranked.
func rankOptions(a spec.Analyze, goal search.Goal) analyze.Options {
	return analyze.Options{Goal: &goal, Top: a.Top, Confidence: a.Confidence, Rank: a.Rank, At: a.ComparedAt(), CSV: a.CSV, Plots: a.Plots}
}

// rankError makes a load that was not measured, and an objective that cannot be told of what was, the user's mistake.
func rankError(err error) error {
	load, objective := new(analyze.LoadError), new(analyze.ObjectiveError)
	if errors.As(err, &load) || errors.As(err, &objective) {
		return withExit(exitUsage, err)
	}
	return err
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
		a, err := analysisOfInput(o.input)
		return []spec.Analyze{a}, "", err
	}
	text, err := readAnalyzeText(o.file)
	if err != nil {
		return nil, "", err
	}
	if !modelanalyzer.Is(text) {
		if err := o.foreign.refuse(); err != nil && o.imported == "" {
			return nil, "", err
		}
		a, err := parseAnalyze(o.file, text)
		return []spec.Analyze{a}, "", err
	}
	machine, err := foreignMachine(ctx)
	if err != nil {
		return nil, "", err
	}
	f, err := modelanalyzer.ParseAnalyze(filepath.Clean(o.file), text, machine, o.foreign.options())
	warnAll(con, f.Warnings)
	return f.Analyses, f.Joint, withExit(exitUsage, err)
}

// readAnalyze reads an analyze file of tuner's own; every mistake is a usage error.
func readAnalyze(path string) (spec.Analyze, error) {
	text, err := readAnalyzeText(path)
	if err != nil {
		return spec.Analyze{}, err
	}
	return parseAnalyze(path, text)
}

func readAnalyzeText(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usageErrorf("cannot read %s: %v", path, err)
	}
	return text, nil
}

// analysisOfInput stands in for an analyze file where only the campaign's output folder is named.
func analysisOfInput(dir string) (spec.Analyze, error) {
	return parseAnalyze("--input", []byte(fmt.Sprintf("input: %q\n", dir)))
}

func parseAnalyze(path string, text []byte) (spec.Analyze, error) {
	a, err := spec.ParseAnalyze(filepath.Clean(path), text, formats.All().Words())
	return a, withExit(exitUsage, err)
}

// printResult puts the result on stdout in the form that --output asks for.
func printResult(out io.Writer, o analyzeOptions, names []string, r analyze.Result) error {
	switch o.output {
	case "text":
		return printTable(out, o, names, r)
	case "none":
		return nil
	}
	return formats.All().Print(out, o.output, r)
}

// printTable prints the table where the formats include it, and its explanation where that is asked for.
func printTable(out io.Writer, o analyzeOptions, names []string, r analyze.Result) error {
	if slices.Contains(names, text.Name) {
		write := text.WriteTable
		if terminal.ShowsColors(isTerminal(out), os.Getenv) {
			write = text.WriteColoredTable
		}
		if err := write(out, r); err != nil || !o.explain {
			return err
		}
		fmt.Fprintln(out)
	}
	if !o.explain {
		return nil
	}
	return text.WriteExplanation(out, r)
}

// isTerminal reports whether what is written is seen at once.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
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
	what := "nothing"
	if r.Verdict.State == verdict.Unfinished {
		what = "nothing that was measured"
	}
	return withExit(exitInfeasible, fmt.Errorf("%s satisfies the constraints; nearest is %s at %s: %s",
		what, nearest.Candidate.Describe(), nearest.Best.Load, strings.Join(misses, ", and ")))
}
