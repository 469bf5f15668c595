package cli

import (
	"github.com/spf13/cobra"

	"tuner/internal/cli/arguments"
	"tuner/internal/cli/comparison"
	"tuner/internal/terminal"
	"tuner/measure"
)

func newCompare(con console) *cobra.Command {
	o := comparison.Options{Out: con.out, Err: con.err}
	cmd := verb(&cobra.Command{
		Use:   "compare A B [C …] | FOLDER",
		Short: "Show what changed between runs, and what did not",
		Long: `Compares the first run with each of the others: what changed per configuration and load, with a 95 % interval, and ~ where nothing is shown.
It says who won, and why that changed. It names the facts in which the runs differ: machine, versions, requests, config.pbtxt. A run is the output
folder of a campaign or a gate. It may also be the JSON of 'tuner perf', or a file of Model Analyzer or perf_analyzer.

With one folder it lists the runs below that folder, and writes index.html there with links to their reports.`,
		Example: `  tuner compare out/monday out/tuesday
  tuner compare old.json new.json --format markdown
  tuner compare a b --format benchstat > c.bench && benchstat -col run c.bench
  tuner compare out`,
		Args: arguments.Usage(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return comparison.Run(o, args) },
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	terminal.AddFormat(flags, &o.Format, "`format` of the comparison: text, markdown, json, html or benchstat")
	flags.StringVarP(&o.File, "output-file", "o", "", "`file` to write in place of stdout; with one folder, the index page")
	flags.Float64Var(&o.Spread, "spread", 100*measure.AssumedSpread, "standard `deviation` of a figure between two runs of one server, in percent")
	return cmd
}
