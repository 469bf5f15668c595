package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tuner/gate"
	"tuner/gate/decide"
	"tuner/gate/output"
	"tuner/hostinfo"
	"tuner/meter"
	"tuner/ortlib"
	"tuner/profile"
	"tuner/spec"
)

// gateOptions are the flags of `tuner gate`.
type gateOptions struct {
	file, baseline, candidate string
	metrics, limits, shapes   []string
	concurrency, rate         int
	budget                    time.Duration
	inconclusive              string
	saveBaseline              string
	allowOtherMachine         bool
	folder                    string
	annotations               string
	quiet                     bool
	output, ortLibrary        string

	given func(flag string) bool
}

func newGate(con console) *cobra.Command {
	var o gateOptions
	cmd := verb(&cobra.Command{
		Use:   "gate -f gate.yaml | --candidate MODEL --baseline MODEL",
		Short: "Fail a build on a real regression, and never on noise",
		Long: `Compares a candidate (model, configuration, ONNX Runtime, engine) with a baseline, or with limits. Both are measured in turn in pairs on fresh
engine processes, until it is proven that the candidate is worse than the baseline by more than the margin (fail), or that it is not (pass), or the
budget is used (inconclusive). With a baseline that --save-baseline wrote earlier only the candidate is measured; on another machine that is
refused.

Written to the output folder: gate.json, gate.md, junit.xml, gate.bench (for benchstat), trend.png, trend.html (for a browser), and a line of
history.jsonl.`,
		Example: `  tuner gate -f gate.yaml
  tuner gate --baseline old.onnx --candidate new.onnx --metric throughput=2% --concurrency 8
  tuner gate --candidate model.onnx --limit 'latency_p99<=30ms' --request-rate 200
  tuner gate --candidate model.onnx --save-baseline baseline.json`,
		Args: usageArgs(fileByFlag),
		RunE: func(cmd *cobra.Command, _ []string) error { return runGate(cmd.Context(), con, o) },
	})
	o.flags(cmd)
	return cmd
}

func (o *gateOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	o.given = f.Changed
	f.StringVarP(&o.file, "file", "f", "", "what to compare (docs/reference/gate.md)")
	f.StringVar(&o.baseline, "baseline", "", "ONNX file or Triton model folder, or a saved baseline (.json)")
	f.StringVar(&o.candidate, "candidate", "", "ONNX file or Triton model folder")
	f.StringArrayVar(&o.metrics, "metric", nil, "METRIC[=MARGIN] that must not be worse, such as throughput=2%; may be repeated")
	f.StringArrayVar(&o.limits, "limit", nil, "METRIC<=BOUND or METRIC>=BOUND, such as latency_p99<=30ms; may be repeated")
	f.IntVar(&o.concurrency, "concurrency", 0, "requests in flight (default 2 × largest batch × instances)")
	f.IntVar(&o.rate, "request-rate", 0, "requests per second, in place of a concurrency")
	f.StringArrayVar(&o.shapes, "shape", nil, "NAME:SIZES of an input without the batch dimension; may be repeated")
	f.DurationVar(&o.budget, "budget", 0, "time to measure in (default 15m)")
	f.StringVar(&o.inconclusive, "inconclusive", "", "what an inconclusive verdict counts as: pass or fail (default exit code 4)")
	f.StringVar(&o.saveBaseline, "save-baseline", "", "file to keep the candidate's figures in, unless it fails")
	f.BoolVar(&o.allowOtherMachine, "allow-other-machine", false, "compare with a baseline that was saved on another machine")
	f.StringVarP(&o.folder, "output-folder", "o", "", "folder of the results (default out/NAME-gate)")
	f.StringVar(&o.annotations, "annotations", "", "lines on stderr for a CI system: github or gitlab")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress")
	f.StringVar(&o.output, "output", "text", "on stdout: text (the table), markdown or json")
	f.StringVar(&o.ortLibrary, "ort-library", "", "ONNX Runtime library, or flavour[@version] of an installed one, of a side that names none")
}

func runGate(ctx context.Context, con console, o gateOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	g, err := readGate(o)
	if err != nil {
		return err
	}
	if err := checkGate(o, g); err != nil {
		return err
	}
	host := hostinfo.Read(ctx)
	setup, err := gate.Open(g, host, func(runtime string) int {
		return gpusOf(ctx, host, func() (ortlib.Build, error) { return gateBuild(o, runtime) })
	})
	if err != nil {
		return inputError(err)
	}
	setup.Tool = toolVersion()
	result, err := judgeGate(ctx, con, o, setup)
	if err != nil {
		return interruptedOr(ctx, inputError(err))
	}
	return reportGate(con, o, result)
}

// check finds the mistakes in flags that are words.
func (o gateOptions) check() error {
	for _, f := range []struct {
		flag, value string
		allowed     []string
	}{
		{"output", o.output, []string{"text", "markdown", "json"}},
		{"annotations", o.annotations, []string{"", output.GitHub, output.GitLab}},
		{"inconclusive", o.inconclusive, []string{"", spec.GatePass, spec.GateFail}},
	} {
		if !slices.Contains(f.allowed, f.value) {
			return usageErrorf("--%s %q: allowed are %s", f.flag, f.value, strings.TrimPrefix(strings.Join(f.allowed, ", "), ", "))
		}
	}
	if o.given("budget") && o.budget < time.Second {
		return usageErrorf("--budget %v: it must be 1s or longer", o.budget)
	}
	return nil
}

// checkGate finds what cannot be judged here, before anything is opened.
func checkGate(o gateOptions, g spec.Gate) error {
	if g.Baseline.IsZero() && len(g.Limits) == 0 && o.saveBaseline == "" {
		return usageErrorf("%s: there is nothing to judge: name a baseline or limits, or save the candidate's figures with --save-baseline FILE", g.Path)
	}
	var problems []error
	sources := meter.ReadSources()
	for _, m := range g.AllMetrics() {
		if lack := sources.Lack(m); lack != "" {
			problems = append(problems, fmt.Errorf("%s: %s cannot be measured on this machine: %s", g.Path, m, lack))
		}
	}
	for field, engine := range map[string]string{"baseline.engine": g.Baseline.Engine, "candidate.engine": g.Candidate.Engine} {
		if engine == "" {
			continue
		}
		if info, err := os.Stat(engine); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			problems = append(problems, fmt.Errorf("%s: %s: %q is no program; name the file of a tuner", g.Path, field, engine))
		}
	}
	problems = append(problems, gate.CheckHistory(g.History))
	if o.saveBaseline != "" {
		problems = append(problems, gate.CheckSaved(o.saveBaseline))
	}
	if err := errors.Join(problems...); err != nil {
		return withExit(exitUsage, err)
	}
	return inputError(profile.CheckOutput(spec.Profile{Path: g.Path, Output: g.Output}))
}

// reportGate keeps what was found out, prints it, and makes the exit code. What cannot be written keeps nothing else from being, since a verdict
// took minutes.
func reportGate(con console, o gateOptions, r gate.Result) error {
	report := output.Report{Result: r}
	var notKept error
	report.History, notKept = keepHistory(r)
	written, notWritten := output.WriteAll(r.Setup.Spec.Output, report)
	notPrinted := printGate(con, o, report)
	if !o.quiet {
		if len(r.Outcome.Pairs) > 0 && notKept == nil {
			written = append(written, r.Setup.Spec.History)
		}
		listFiles(con.err, r.Setup.Spec.Output, written)
	}
	return errors.Join(gateExit(r), inputError(notKept), inputError(notWritten), notPrinted, inputError(saveGate(con, o, r)))
}

// keepHistory adds a gate that measured anything to its history, and returns that; with an error what could be read of it.
func keepHistory(r gate.Result) ([]gate.Record, error) {
	path := r.Setup.Spec.History
	if len(r.Outcome.Pairs) == 0 {
		return gate.ReadHistory(path)
	}
	history, err := gate.AppendHistory(path, gate.NewRecord(r))
	if err != nil {
		history, _ = gate.ReadHistory(path) // nor may it be readable
	}
	return history, err
}

// printGate writes what is asked for to stdout, and annotations to stderr.
func printGate(con console, o gateOptions, report output.Report) error {
	var err error
	switch o.output {
	case "json":
		err = output.WriteJSON(con.out, report)
	case "markdown":
		err = output.WriteMarkdown(con.out, report)
	default:
		err = output.WriteTable(con.out, report)
	}
	if err == nil && o.annotations != "" {
		err = output.WriteAnnotations(con.err, o.annotations, report)
	}
	return err
}

// saveGate keeps the candidate's figures as a baseline where that is asked for, and where they are good for one.
func saveGate(con console, o gateOptions, r gate.Result) error {
	if o.saveBaseline == "" {
		return nil
	}
	if why := unfit(r.Outcome); why != "" {
		fmt.Fprintf(con.err, "the baseline %s is left as it was: %s\n", o.saveBaseline, why)
		return nil
	}
	saved, err := gate.NewSaved(r.Setup, r.Outcome.Pairs, r.Time, r.Revision)
	if err != nil {
		return err
	}
	if err := saved.Save(o.saveBaseline); err != nil {
		return err
	}
	fmt.Fprintf(con.err, "baseline saved to %s\n", o.saveBaseline)
	return nil
}

// unfit says why what was measured is no baseline; "" where it is one.
func unfit(o gate.Outcome) string {
	switch {
	case o.Verdict == decide.Fail:
		return "the candidate failed"
	case o.Interrupted:
		return "the gate was interrupted"
	case o.Backlog:
		return "the candidate did not keep up with the rate"
	case len(o.Pairs) < decide.LeastPairs:
		return "too little was measured"
	}
	return ""
}

// gateExit is the error that makes the exit code of a verdict.
func gateExit(r gate.Result) error {
	reasons := strings.Join(r.Outcome.Reasons, "; ")
	switch {
	case r.Outcome.Interrupted:
		return withExit(exitInterrupted, fmt.Errorf("gate %s", reasons))
	case r.CountsAs(r.Outcome.Verdict) == decide.Pass:
		return nil
	case r.Outcome.Verdict == decide.Fail:
		return withExit(exitGateFailed, fmt.Errorf("gate failed: %s", reasons))
	case r.CountsAs(r.Outcome.Verdict) == decide.Fail:
		return withExit(exitGateFailed, fmt.Errorf("gate inconclusive, which counts as failed: %s", reasons))
	}
	return withExit(exitInconclusive, fmt.Errorf("gate inconclusive: %s", reasons))
}
