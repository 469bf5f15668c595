package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"tuner/gate"
	"tuner/gate/decide"
	"tuner/gate/flags"
	"tuner/gate/judge"
	"tuner/gate/output"
	"tuner/gate/progress"
	"tuner/internal/cli/arguments"
	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/internal/live/stage"
	"tuner/ort/ortlib"
	"tuner/profile"
	"tuner/profile/preparation"
)

func newGate(con console) *cobra.Command {
	o := &flags.Options{}
	var ui stage.Choice
	cmd := verb(&cobra.Command{
		Use:   "gate -f gate.yaml | --candidate MODEL --baseline MODEL",
		Short: "Fail a build when serving becomes slower, and not on noise",
		Long: `Compares a candidate with a baseline, or with limits. Each is a model with its configuration, ONNX Runtime and engine. Both are measured
in turn, in pairs on fresh engine processes. The verdict is fail when the candidate is proven to be worse by more than the margin. It is
pass when that is refuted, and inconclusive when the budget ends first.

With a baseline that --save-baseline wrote earlier, only the candidate is measured. A baseline of another machine is refused.

Written to the output folder: gate.json, gate.md, junit.xml, gate.bench (for benchstat), trend.png, trend.html (for a browser), and a
line of history.jsonl.`,
		Example: `  tuner gate -f gate.yaml
  tuner gate --baseline old.onnx --candidate new.onnx --metric throughput=2% --concurrency 8
  tuner gate --candidate model.onnx --limit 'latency_p99<=30ms' --request-rate 200
  tuner gate --candidate model.onnx --save-baseline baseline.json`,
		Args: arguments.Plain(&o.File, nil, "name the model to judge as --candidate %[1]s"),
		RunE: func(cmd *cobra.Command, _ []string) error { return runGate(cmd.Context(), con, o, ui) },
	})
	o.Add(cmd.Flags())
	ui.AddFlags(cmd.Flags())
	return cmd
}

func runGate(ctx context.Context, con console, o *flags.Options, ui stage.Choice) (err error) {
	if con.err, o.Quiet, err = con.stage.Messages(ui, o.Quiet, con.in, con.out, con.err); err != nil {
		return err
	}
	g, err := o.Read()
	if err != nil {
		return err
	}
	if err := gate.Check(g, o.SaveBaseline); err != nil {
		return exit.OfFiles(err)
	}
	host := hostinfo.Read(ctx)
	setup, err := gate.Open(g, host, func(runtime string) profile.Place {
		return preparation.Place(ctx, host, g.Libraries, func() (ortlib.Build, error) { return judge.Build(runtime, o.ORTLibrary) })
	})
	if err != nil {
		return exit.OfFiles(err)
	}
	setup.Tool = toolVersion()
	var shown *progress.Progress
	defer func() { shown.Close() }() // also after a panic, whose report belongs on the ordinary screen
	options := judge.Options{AllowOtherMachine: o.AllowOtherMachine, ORTLibrary: o.ORTLibrary, Warnings: con.err}
	if !o.Quiet {
		options.Progress = func(text string) { fmt.Fprintln(con.err, text) }
		options.Begin = func() gate.Observer { shown = progress.New(con.err, setup); return shown }
	}
	result, err := judge.Run(ctx, setup, options)
	shown.Close()
	if err != nil {
		return exit.OrInterrupted(ctx, exit.OfFiles(err))
	}
	return reportGate(con, o, result)
}

// reportGate saves the result, prints it, and returns the error with the exit code. If a file
// cannot be written, the others are still written, since a verdict takes minutes.
func reportGate(con console, o *flags.Options, r gate.Result) error {
	report := output.Report{Result: r}
	var notKept error
	report.History, notKept = gate.KeepHistory(r)
	con.stage.Report(func(w io.Writer) error { return output.WriteTrend(w, report) })
	written, notWritten := output.WriteAll(r.Setup.Spec.Output, report)
	notPrinted := printGate(con, o, report)
	if !o.Quiet {
		if len(r.Outcome.Pairs) > 0 && notKept == nil {
			written = append(written, r.Setup.Spec.History)
		}
		listFiles(con.err, r.Setup.Spec.Output, written)
	}
	return errors.Join(gateExit(r), exit.OfFiles(notKept), exit.OfFiles(notWritten), notPrinted, exit.OfFiles(saveGate(con, o, r)))
}

// printGate writes the result to stdout, and annotations to stderr.
func printGate(con console, o *flags.Options, report output.Report) error {
	var err error
	switch o.Output {
	case "json":
		err = output.WriteJSON(con.out, report)
	case "markdown":
		err = output.WriteMarkdown(con.out, report)
	default:
		err = output.WriteTable(con.out, report)
	}
	if err == nil && o.Annotations != "" {
		err = output.WriteAnnotations(con.err, o.Annotations, report)
	}
	return err
}

// saveGate saves the candidate's figures as a baseline if the flags ask for it and the figures are
// suitable.
func saveGate(con console, o *flags.Options, r gate.Result) error {
	if o.SaveBaseline == "" {
		return nil
	}
	if why := r.Outcome.Unfit(); why != "" {
		fmt.Fprintf(con.err, "the baseline %s was not changed: %s\n", o.SaveBaseline, why)
		return nil
	}
	if err := r.SaveAs(o.SaveBaseline); err != nil {
		return err
	}
	fmt.Fprintf(con.err, "baseline saved to %s\n", o.SaveBaseline)
	return nil
}

// gateExit returns the error with the exit code of a verdict.
func gateExit(r gate.Result) error {
	reasons := strings.Join(r.Outcome.Reasons, "; ")
	switch {
	case r.Outcome.Interrupted:
		return exit.With(exit.Interrupted, fmt.Errorf("gate %s", reasons))
	case r.CountsAs(r.Outcome.Verdict) == decide.Pass:
		return nil
	case r.Outcome.Verdict == decide.Fail:
		return exit.With(exit.GateFailed, fmt.Errorf("gate failed: %s", reasons))
	case r.CountsAs(r.Outcome.Verdict) == decide.Fail:
		return exit.With(exit.GateFailed, fmt.Errorf("gate inconclusive, which counts as failed: %s", reasons))
	}
	return exit.With(exit.Inconclusive, fmt.Errorf("gate inconclusive: %s", reasons))
}
