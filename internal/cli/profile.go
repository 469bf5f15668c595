package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"tuner/internal/cli/arguments"
	"tuner/internal/exit"
	"tuner/internal/live/stage"
	"tuner/internal/terminal"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/profile"
	"tuner/profile/dryrun"
	"tuner/profile/preparation"
	"tuner/report/formats"
	"tuner/report/html"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/draft"
	"tuner/spec/edit"
)

// profileOptions are the flags of `tuner profile`.
type profileOptions struct {
	file       string
	dryRun     bool
	quiet      bool
	ui         stage.Choice
	output     string
	ortLibrary string
	earlier    []string
	until      float64     // replaces the profile's value; 0 keeps that
	flags      edit.Fields // replace fields of the profile
	foreign    foreignFlags
}

// modelToProfile is the advice for a model in place of a profile.
const modelToProfile = "'tuner run %[1]s' tunes a model, and 'tuner init %[1]s' writes a profile for it"

func newProfile(con console) *cobra.Command {
	var o profileOptions
	var until string
	cmd := verb(&cobra.Command{
		Use:   "profile profile.yaml",
		Short: "Search and measure configurations of a model",
		Long: `Searches configurations of an ONNX model. It launches the bundled engine with one configuration after the other. It finds the
highest load of each within the constraints, and appends every measurement to <output>/journal.jsonl. Then 'tuner analyze' ranks the
configurations and writes the results.

The fields runner and finals name another server: a tritonserver that is launched, or a server that runs already. It is measured in
place of the engine, or confirms the finalists.

The file may also be one of Triton Model Analyzer (docs/reference/model_analyzer.md). Its models are profiled one after the other. Their
results have the form of Model Analyzer's own profile.

Ctrl-C keeps what was measured. Run the same command again to resume. A second Ctrl-C ends it at once.`,
		Example: "  tuner profile profile.yaml\n  tuner profile profile.yaml --dry-run\n  tuner profile profile.yaml --p99 20ms --budget 5m -o out/tight\n  tuner profile profile.yaml --until 2%\n  tuner profile larger.yaml --earlier out/minilm",
		Args:    arguments.Plain(&o.file, nil, modelToProfile),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("until") {
				p, err := readFlag("until", until, untilLine)
				if err != nil {
					return err
				}
				o.until = p.Search.Until
			}
			if err := o.checkFlags(); err != nil {
				return err
			}
			return runProfile(cmd.Context(), con, o)
		},
	})
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "`profile.yaml` (docs/reference/profile.md), or Model Analyzer's file")
	o.foreign.add(cmd.Flags())
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "list the candidates, the folded ones with reasons, and a time estimate; measure nothing")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "print no progress, as --ui none")
	o.ui.AddFlags(cmd.Flags())
	terminal.AddFormat(cmd.Flags(), &o.output, "`format` of the summary on stdout: text or json")
	cmd.Flags().StringArrayVar(&o.earlier, "earlier", nil, "output `folder` of an earlier campaign on the same model to learn from, beside search.earlier; may be repeated")
	cmd.Flags().StringVar(&o.flags.P99, "p99", "", "`limit` of the p99 latency, such as 30ms; in place of constraints.latency_p99")
	cmd.Flags().StringVar(&o.flags.Budget, "budget", "", "`time` for the search, such as 5m; in place of search.budget")
	cmd.Flags().StringVarP(&o.flags.Output, "output-folder", "o", "", "`folder` to write to, in place of output")
	cmd.Flags().StringVar(&until, "until", "", "end before the budget when nothing else is likely to be better by this `share`, such as 2%; in place of search.until")
	cmd.Flags().StringVar(&o.ortLibrary, "ort-library", "", "ONNX Runtime `library`, or flavour[@version] of an installed build (default $TUNER_ORT_LIBRARY, then the installed cpu build)")
	return cmd
}

// checkFlags checks the flags that replace fields of the profile.
func (o profileOptions) checkFlags() error {
	var errs []error
	for _, f := range []struct{ flag, value, line string }{{"p99", o.flags.P99, p99Line}, {"budget", o.flags.Budget, budgetLine}} {
		if f.value != "" {
			_, err := readFlag(f.flag, f.value, f.line)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (o profileOptions) preparation(con console) preparation.Options {
	return preparation.Options{File: o.file, Library: o.ortLibrary, Version: toolVersion(), DryRun: o.dryRun, Quiet: o.quiet, Messages: con.err}
}

// runCampaign runs the campaign of one profile.
func runCampaign(ctx context.Context, con console, o profileOptions, p spec.Profile) (err error) {
	c, err := o.preparation(con).Open(ctx, p)
	if err != nil {
		return err
	}
	if o.dryRun {
		return runDryRun(con, o, c)
	}
	defer func() { err = errors.Join(err, c.Restore(ctx)) }()
	variants, err := c.MakeVariants(ctx)
	if err != nil {
		return err
	}
	outcome, err := c.Run(ctx, variants)
	if err != nil {
		return err
	}
	con.stage.Report(func(w io.Writer) error { return html.WriteFolder(w, p.Output) })
	return summarize(con, o, c.Setup, outcome)
}

// replace sets the fields of a profile that flags set beside its text.
func (o profileOptions) replace(p *spec.Profile) error {
	if len(o.earlier) > 0 && p.IsSeveral() { // package spec refuses the field
		return exit.Usagef("--earlier: %s has several models, and no campaign of several models can be reused yet; leave the flag out", o.file)
	}
	p.Search.Earlier, p.Search.Until = append(p.Search.Earlier, o.earlier...), cmp.Or(o.until, p.Search.Until)
	return nil
}

// runDryRun describes what a campaign would do. Package preparation has checked everything.
func runDryRun(con console, o profileOptions, c preparation.Campaign) error {
	forecast, err := dryrun.New(c.Setup, c.Notes)
	if err != nil {
		return err
	}
	if o.output == "json" {
		return writeJSON(con.out, forecast)
	}
	return forecast.Write(con.out)
}

// summary is the output of `tuner profile --format json`.
type summary struct {
	Model       string  `json:"model"`
	Output      string  `json:"output"`
	Trials      int     `json:"trials"`
	Failed      int     `json:"failed"`
	Reason      string  `json:"reason"`
	Interrupted bool    `json:"interrupted"`
	Elapsed     float64 `json:"elapsed_seconds"`
	Leader      *leader `json:"leader,omitempty"` // best configuration within the constraints; its figures come from analyze
	// Statement has the strategy's claims about its result, in sentences.
	Statement []string `json:"statement,omitempty"`
}

// leader is the best configuration so far, at its best load.
type leader struct {
	Candidate search.Candidate `json:"candidate"`
	Load      measure.Load     `json:"load"`
	// Probability is the probability that all constraints are kept, 0..1.
	Probability float64 `json:"probability"`
}

func summarize(con console, o profileOptions, setup profile.Setup, outcome profile.Outcome) error {
	status, end := outcome.Status, outcome.End
	s := summary{Model: setup.Name(), Output: setup.Profile.Output, Trials: status.Trials, Failed: status.Failed,
		Reason: end.Reason, Interrupted: end.Interrupted, Elapsed: end.Elapsed.Seconds(), Statement: end.Statement}
	if answer := status.Answer(); answer != nil {
		s.Leader = &leader{answer.Candidate, answer.Load, answer.Holds}
	}
	if o.output == "json" {
		if err := writeJSON(con.out, s); err != nil {
			return err
		}
	} else {
		printSummary(con.out, s, outcome, analysisOf(setup.Profile))
	}
	switch {
	case end.Interrupted && s.Trials == 0:
		return exit.With(exit.Interrupted, errors.New("interrupted in the first trial; the same command begins it again"))
	case end.Interrupted:
		return exit.With(exit.Interrupted, fmt.Errorf("interrupted after %d trials; the same command resumes, and 'tuner analyze' uses what was measured", s.Trials))
	case s.Leader == nil && s.Failed == s.Trials:
		return exit.With(exit.Infeasible, errors.New("nothing satisfies the constraints: no configuration could be measured; 'tuner analyze' lists the failures"))
	case s.Leader == nil:
		return exit.With(exit.Infeasible, errors.New("nothing satisfies the constraints; 'tuner analyze' shows the nearest configuration"))
	}
	return nil
}

// analysisOf returns the analysis that the next command makes. A file beside the profile that cannot be read is left out,
// since it may be another campaign's.
func analysisOf(p spec.Profile) spec.Analyze {
	a, _, err := draft.AnalysisOf(p, formats.All().Words())
	if err != nil {
		return spec.Analyze{Input: p.Output}
	}
	return a
}

func printSummary(out io.Writer, s summary, outcome profile.Outcome, next spec.Analyze) {
	status, end, width := outcome.Status, outcome.End, terminal.ProseColumns(out)
	out = terminal.Spelling(out, os.Getenv)
	fmt.Fprintln(out, terminal.Fill(fmt.Sprintf("%s: %d trials (%d failed) in %s; %s", s.Model, s.Trials, s.Failed, words.Clock(end.Elapsed), s.Reason), width))
	if s.Trials == 0 { // interrupted in the first trial: there is nothing to report or analyze
		return
	}
	switch {
	case s.Failed == s.Trials:
		fmt.Fprintln(out, "nothing could be measured")
	case len(s.Statement) == 0 && status.Answer() == nil:
		fmt.Fprintln(out, "no configuration satisfied the constraints so far")
	}
	if s.Failed < s.Trials {
		for _, sentence := range s.Statement {
			fmt.Fprintln(out, terminal.Fill(terminal.Plain(sentence), width))
		}
	}
	flag, path := next.Source()
	fmt.Fprintf(out, "next: tuner analyze %s %s\n", flag, words.ShellWord(path))
}
