package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"tuner/analyze"
	"tuner/internal/cli/arguments"
	"tuner/internal/exit"
	"tuner/internal/terminal"
	"tuner/report/formats"
	"tuner/spec"
	"tuner/spec/goals"
)

// analyzeOptions are the flags of `tuner analyze`.
type analyzeOptions struct {
	file      string
	input     string
	imported  string
	folder    string // of the results, in place of the campaign's or the file's
	output    string // text, json, csv, markdown, or none after a campaign
	explain   bool
	overrides spec.Overrides
	foreign   foreignFlags
}

func newAnalyze(con console) *cobra.Command {
	var o analyzeOptions
	cmd := verb(&cobra.Command{
		Use:     "analyze FOLDER | analyze.yaml",
		Aliases: []string{"report"},
		Short:   "Rank measured configurations and write the results",
		Long: `Reads a campaign's journal, ranks the configurations under the constraints, and prints the table. It writes CSV, charts, a page for the
browser (report.html), the optimal config.pbtxt and a model repository that is ready to deploy. It measures nothing. Change constraints,
objective or load and analyze again, also while the campaign runs.

The file may also be one of Triton Model Analyzer's profile or report (docs/reference/model_analyzer.md). --import ranks measurements of
other programs: a checkpoint of Model Analyzer, or perf_analyzer's CSV or output.

'formats' in the file chooses among: ` + strings.Join(formats.All().Words(), ", ") + `. report.md and result.json are always written.`,
		Example: "  tuner analyze out/minilm\n  tuner analyze analyze.yaml\n  tuner analyze out/minilm --explain\n  tuner analyze out/minilm --at concurrency=8\n" +
			"  tuner analyze out/minilm --mode online\n  tuner analyze --import checkpoints/0.ckpt -e results",
		Args: arguments.Plain(&o.file, &o.input, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("top") && o.overrides.Top < 1 {
				return exit.Usagef("--top %d: must be a whole number from 1", o.overrides.Top)
			}
			if cmd.Flags().Changed("confidence") && !goals.IsConfidence(o.overrides.Confidence) {
				return exit.Usagef("--confidence %g: must be a probability between 0.5 and 1, such as 0.9", o.overrides.Confidence)
			}
			return runAnalyze(cmd.Context(), con, o)
		},
	})
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "`analyze.yaml` (docs/reference/analyze.md), or Model Analyzer's file")
	cmd.Flags().StringVar(&o.input, "input", "", "output `folder` of a campaign, in place of a file")
	cmd.Flags().StringVar(&o.imported, "import", "", "`path` of another program's measurements: checkpoint or folder of checkpoints, CSV, output; -f gives the goal")
	cmd.Flags().StringVarP(&o.folder, "output-folder", "o", "", "`folder` of the results (default the campaign's)")
	o.foreign.add(cmd.Flags())
	terminal.AddFormat(cmd.Flags(), &o.output, "`format` on stdout: "+formats.All().StdoutHelp())
	cmd.Flags().BoolVar(&o.explain, "explain", false, "explain the best configuration: its limits, the knobs that matter, the candidates that were not tried (always in json and markdown)")
	cmd.Flags().StringVar(&o.overrides.Mode, "mode", "", "`purpose` in place of the profile's goal: online (latency at the lowest load) or offline (throughput, whatever the latency)")
	cmd.Flags().StringVar(&o.overrides.At, "at", "", "`load` of the comparison: best (of each configuration), concurrency=8, request_rate=200, lowest, or each (every load by itself too, with --format csv as a table)")
	cmd.Flags().StringVar(&o.overrides.Rank, "rank", "", "rank by the `measure` score (of the best load) or top3-mean (mean of the three highest throughputs)")
	cmd.Flags().Float64Var(&o.overrides.Confidence, "confidence", 0, "`probability` with which limits must hold, such as 0.9, in place of the profile's (default 0.95)")
	cmd.Flags().IntVar(&o.overrides.Top, "top", 0, "`number` of configurations that tables and charts highlight, beside the default (default 3)")
	return cmd
}

func runAnalyze(ctx context.Context, con console, o analyzeOptions) error {
	if err := arguments.CheckFormatOf(o.output, formats.All().StdoutWords()); err != nil {
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
