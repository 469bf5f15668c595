package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tuner/analyze"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/terminal"
	"tuner/pipeline"
	"tuner/report/formats"
	"tuner/report/text"
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
		Short:   "Rank measured configurations and write the results",
		Long: `Reads a campaign's journal, ranks the configurations under the constraints, and prints the table. It writes CSV, charts, a page for the
browser (report.html), the optimal config.pbtxt and a model repository that is ready to deploy. It measures nothing. Change constraints,
objective or load and analyze again, also while the campaign runs.

The file may also be one of Triton Model Analyzer's profile or report (docs/reference/model_analyzer.md). --import ranks measurements of
other programs: a checkpoint of Model Analyzer, or perf_analyzer's CSV or output.

'formats' in the file chooses among: ` + strings.Join(formats.All().Words(), ", ") + `. report.md and result.json are always written.`,
		Example: "  tuner analyze -f analyze.yaml\n  tuner analyze --input out/minilm --explain\n  tuner analyze --input out/minilm --at concurrency=8\n" +
			"  tuner analyze --input out/minilm --mode online\n  tuner analyze --import checkpoints/0.ckpt -e results",
		Args: fileByFlag("", "name a campaign's folder as --input %[1]s"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("top") && o.overrides.Top < 1 {
				return exit.Usagef("--top %d: must be a whole number from 1", o.overrides.Top)
			}
			if cmd.Flags().Changed("confidence") && !spec.IsConfidence(o.overrides.Confidence) {
				return exit.Usagef("--confidence %g: must be a probability between 0.5 and 1, such as 0.9", o.overrides.Confidence)
			}
			return runAnalyze(cmd.Context(), con, o)
		},
	})
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "`analyze.yaml` (docs/reference/analyze.md), or Model Analyzer's file")
	cmd.Flags().StringVar(&o.input, "input", "", "output `folder` of a campaign, in place of a file")
	cmd.Flags().StringVar(&o.imported, "import", "", "`path` of another program's measurements: checkpoint or folder of checkpoints, CSV, output; -f gives the goal")
	o.foreign.add(cmd.Flags())
	cmd.Flags().StringVar(&o.output, "output", "text", "`format` on stdout: "+formats.All().StdoutHelp())
	cmd.Flags().BoolVar(&o.explain, "explain", false, "explain the best configuration: its limits, the knobs that matter, the candidates that were not tried (always in json and markdown)")
	cmd.Flags().StringVar(&o.overrides.Mode, "mode", "", "`purpose` in place of the profile's goal: online (latency at the lowest load) or offline (throughput, whatever the latency)")
	cmd.Flags().StringVar(&o.overrides.At, "at", "", "`load` of the comparison: best (of each configuration), concurrency=8, request_rate=200, lowest, or each (every load by itself, too)")
	cmd.Flags().StringVar(&o.overrides.Rank, "rank", "", "rank by the `measure` score (of the best load) or top3-mean (mean of the three highest throughputs)")
	cmd.Flags().Float64Var(&o.overrides.Confidence, "confidence", 0, "`probability` with which limits must hold, such as 0.9, in place of the profile's (default 0.95)")
	cmd.Flags().IntVar(&o.overrides.Top, "top", 0, "`number` of configurations that tables and charts highlight, beside the default (default 3)")
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
	var models exit.Several
	for _, a := range list {
		if err := models.Add(analyzeOne(con, o, a)); err != nil {
			return err
		}
	}
	if joint != "" {
		if err := models.Add(joinResults(con, joint, list)); err != nil {
			return err
		}
	}
	return models.Unmet()
}

// analyzeOne ranks one campaign and writes its results.
func analyzeOne(con console, o analyzeOptions, a spec.Analyze) error {
	a, err := a.With(o.overrides)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	result, err := analyze.RankFile(a)
	if err != nil {
		return err
	}
	return deliver(con, o, a, result)
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
		return exit.OfFiles(err)
	}
	listFiles(con.err, a.Output, written)
	pipeline.NoteOldChart(con.err, a.Output, result)
	return result.Unmet()
}

// readAnalyses reads the analyze file, tuner's or Model Analyzer's. With only --input it makes one.
// joint is the folder of the results of all models together; "" for a single model.
func readAnalyses(ctx context.Context, con console, o analyzeOptions) (list []spec.Analyze, joint string, err error) {
	switch {
	case o.file == "" && o.input == "":
		return nil, "", exit.Usagef("nothing to analyze: use -f analyze.yaml, or --input with a campaign's output folder")
	case o.file != "" && o.input != "":
		return nil, "", exit.Usagef("-f and --input contradict each other: the file names its own input")
	case o.file == "":
		if err := o.foreign.refuse(); err != nil {
			return nil, "", err
		}
		a, err := spec.AnalyzeOf(o.input, formats.All().Words())
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
	return f.Analyses, f.Joint, exit.With(exit.Usage, err)
}

func readAnalyzeText(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, exit.Usagef("cannot read %q: %v", path, durable.Cause(err))
	}
	return text, nil
}

func parseAnalyze(path string, text []byte) (spec.Analyze, error) {
	a, err := spec.ParseAnalyze(filepath.Clean(path), text, formats.All().Words())
	return a, exit.With(exit.Usage, err)
}

// printResult prints the result in the form of --output.
func printResult(out io.Writer, o analyzeOptions, names []string, r analyze.Result) error {
	switch o.output {
	case "text":
		return printTable(out, o, names, r)
	case "none":
		return nil
	}
	return formats.All().Print(out, o.output, r)
}

// printTable prints the table if the formats include it, and its explanation if requested.
func printTable(out io.Writer, o analyzeOptions, names []string, r analyze.Result) error {
	if slices.Contains(names, text.Name) {
		write := text.WriteTable
		if _, isTerminal := terminal.File(out); terminal.ShowsColors(isTerminal, os.Getenv) {
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

// listFiles lists the files of a result.
func listFiles(out io.Writer, dir string, written []string) {
	fmt.Fprintf(out, "\nwritten to %s:\n", dir)
	for _, path := range written {
		if relative, err := filepath.Rel(dir, path); err == nil {
			path = relative
		}
		fmt.Fprintf(out, "  %s\n", path)
	}
}
