package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tuner/hostinfo"
	"tuner/journal"
	"tuner/measure"
	"tuner/meter"
	"tuner/ortlib"
	"tuner/profile"
	"tuner/runner"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec"
)

// profileOptions are the flags of `tuner profile`.
type profileOptions struct {
	file       string
	dryRun     bool
	quiet      bool
	output     string
	ortLibrary string
	earlier    []string
	foreign    foreignFlags
}

func newProfile(con console) *cobra.Command {
	var o profileOptions
	cmd := verb(&cobra.Command{
		Use:   "profile -f profile.yaml",
		Short: "Search and measure configurations of a model",
		Long: `Searches configurations of an ONNX model: launches the bundled engine, or the Triton that the profile names, with one configuration after
the other, finds the highest load within the constraints for each, and appends every measurement to <output>/journal.jsonl.

The file may be one of Triton Model Analyzer, as it is (docs/model_analyzer.md): its models are profiled one after the other, and the
results of each are written as its own profile does.

Interrupted (Ctrl-C) it keeps what was measured; the same command goes on where it stopped. A second Ctrl-C ends it at once.
Then 'tuner analyze' ranks the configurations and writes the results.`,
		Example: "  tuner profile -f profile.yaml\n  tuner profile -f profile.yaml --dry-run\n  tuner profile -f larger.yaml --earlier out/minilm",
		Args:    usageArgs(fileByFlag),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runProfile(cmd.Context(), con, o) },
	})
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "the profile (docs/formats/profile.md), or Model Analyzer's file")
	addForeignFlags(cmd, &o.foreign)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "list the candidates, what was folded and why, and a time estimate; measure nothing")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "no progress")
	cmd.Flags().StringVar(&o.output, "output", "text", "summary on stdout: text or json")
	cmd.Flags().StringArrayVar(&o.earlier, "earlier", nil, "output folder of an earlier campaign on the same model to learn from, beside those of search.earlier; may be repeated")
	cmd.Flags().StringVar(&o.ortLibrary, "ort-library", "", "ONNX Runtime library, or flavour[@version] of an installed one (default $TUNER_ORT_LIBRARY, then the installed cpu build)")
	return cmd
}

// runProfileOf runs one campaign.
func runProfileOf(ctx context.Context, con console, o profileOptions, p spec.Profile) error {
	p.Search.Earlier = append(p.Search.Earlier, o.earlier...)
	if p.Runner.MetricsURL == "" { // else the server tells of its GPUs
		if err := checkMetrics(o.file, p.Goal, meter.ReadSources()); err != nil {
			return err
		}
	}
	if err := checkRemote(o.file, p); err != nil {
		return err
	}
	host := hostinfo.Read(ctx)
	subject, err := profile.OpenSubject(p, len(host.GPUs))
	if err != nil {
		return inputError(err)
	}
	requests, err := profile.Requests(p, subject)
	if err != nil {
		return inputError(fmt.Errorf("%s: load.inputs: %w", o.file, err))
	}
	facts := profile.FactsOf(subject, host.CPU)
	var builds []ortlib.Build
	var server journal.RuntimeInfo
	if p.Runner.Mode == spec.RunnerBundled {
		builds, facts, err = findBuilds(ctx, con, o, p, subject, facts)
	} else {
		server, facts, err = findServer(ctx, con, o, p, facts)
	}
	if err != nil {
		return interruptedOr(ctx, err)
	}
	setup, err := newSetup(p, subject, facts, builds, host)
	if err != nil {
		return err
	}
	if p.Runner.Mode != spec.RunnerBundled {
		setup.Runtime = server
	}
	if err := checkCampaign(o, setup); err != nil { // before minutes of conversions
		return err
	}
	if o.dryRun {
		return runDryRun(con, o, setup)
	}
	variants, err := makeVariants(ctx, con, o, p, subject, facts, builds)
	if err != nil {
		return interruptedOr(ctx, inputError(err))
	}
	return runCampaign(ctx, con, o, setup.With(variants), requests)
}

// findBuilds finds and probes the ONNX Runtime builds of a campaign on the bundled engine; none for a dry run on a machine without.
func findBuilds(ctx context.Context, con console, o profileOptions, p spec.Profile, s profile.Subject, facts search.Facts) ([]ortlib.Build, search.Facts, error) {
	if err := checkRuntimes(o, p); err != nil {
		return nil, facts, err
	}
	builds, missing := campaignBuilds(o, p)
	switch {
	case missing == nil:
		return probeBuilds(ctx, builds, p, s, facts)
	case o.dryRun && !errors.As(missing, new(*ortlib.SameError)): // needs no ONNX Runtime, only knows more with one
		fmt.Fprintf(con.err, "%v\nthe plan is made without: what does not work here is not left out of it\n", missing)
		return builds, facts, nil
	}
	return nil, facts, withExit(exitUsage, missing)
}

// checkMetrics finds the metrics of a goal that the machine does not tell, before anything is launched.
func checkMetrics(file string, goal search.Goal, sources meter.Sources) error {
	var problems []error
	for _, m := range goal.Metrics() {
		if lack := sources.Lack(m); lack != "" {
			problems = append(problems, fmt.Errorf("%s: %s: %s cannot be measured on this machine: %s", file, goalField(goal, m), m, lack))
		}
	}
	return withExit(exitUsage, errors.Join(problems...))
}

// goalField is the field of a profile that names a metric of its goal.
func goalField(goal search.Goal, m measure.Metric) string {
	for _, c := range goal.Constraints {
		if c.Metric == m {
			return "constraints." + string(m)
		}
	}
	if len(goal.Objective.Terms) > 1 {
		return "weights." + string(m)
	}
	return "objective"
}

// newSetup collects what a campaign depends on, but for its variants. Without builds, a dry run's, it names no runtime.
func newSetup(p spec.Profile, s profile.Subject, facts search.Facts, builds []ortlib.Build, host hostinfo.Host) (profile.Setup, error) {
	machine, err := json.Marshal(host)
	if err != nil {
		return profile.Setup{}, fmt.Errorf("cannot encode the facts of the machine: %w", err)
	}
	setup := profile.Setup{Profile: p, Subject: s, Facts: facts, Tool: toolVersion(), Machine: machine, Fingerprint: host.Fingerprint()}
	if len(builds) > 0 {
		setup.Runtime = runtimeInfo(builds[0])
	}
	switch {
	case len(builds) == 0 || len(p.Runtimes()) == 0:
		return setup, nil
	case p.DeployTarget == spec.TargetTriton: // all others are folded
		builds = builds[:1]
	}
	for _, b := range builds {
		setup.Runtimes = append(setup.Runtimes, runtimeInfo(b))
	}
	return setup, nil
}

// checkCampaign finds the mistakes in a space that only model and machine show, earlier campaigns that cannot be reused, an output
// folder that cannot be written, and, where the runtime is known, the journal of another campaign in it.
func checkCampaign(o profileOptions, s profile.Setup) error {
	if _, err := plan.New(s.Profile.Search.Strategy, s.Profile.Settings(s.Facts)); err != nil {
		return usageErrorf("%s: %v", o.file, err)
	}
	if err := profile.CheckSpace(s.Profile, s.Subject, s.Facts); err != nil {
		return inputError(err)
	}
	if _, err := profile.Reuse(s); err != nil {
		return inputError(err)
	}
	if err := profile.CheckOutput(s.Profile); err != nil || s.Runtime.Library == "" {
		return inputError(err)
	}
	return inputError(profile.CheckLog(s))
}

// checkRuntimes finds builds that are named in two places.
func checkRuntimes(o profileOptions, p spec.Profile) error {
	if len(p.Runtimes()) > 0 && o.ortLibrary != "" {
		return usageErrorf("%s: space.runtime: contradicts --ort-library %s: leave one of the two out", o.file, o.ortLibrary)
	}
	return nil
}

// campaignBuilds finds the ONNX Runtime builds of a campaign, the default's first: those of the knob runtime, else the one that
// flag, environment or installation name.
func campaignBuilds(o profileOptions, p spec.Profile) ([]ortlib.Build, error) {
	selectors := p.Runtimes()
	if len(selectors) == 0 {
		build, err := ortlib.Resolve(o.ortLibrary)
		return []ortlib.Build{build}, err
	}
	if err := checkRuntimes(o, p); err != nil {
		return nil, err
	}
	builds, err := ortlib.ResolveAll(selectors)
	if err != nil {
		return nil, fmt.Errorf("%s: space.runtime: %w", o.file, err)
	}
	return builds, nil
}

// probeBuilds opens the builds, and returns them with their versions, and the facts with what each can do with the model.
func probeBuilds(ctx context.Context, builds []ortlib.Build, p spec.Profile, s profile.Subject, facts search.Facts) ([]ortlib.Build, search.Facts, error) {
	opened := make([]ortlib.Build, len(builds))
	for i, b := range builds {
		var err error
		if opened[i], err = openBuild(ctx, b); err != nil {
			return nil, facts, err
		}
	}
	if selectors := p.Runtimes(); len(selectors) > 0 { // again, by the versions that the libraries themselves say
		if err := ortlib.CheckDistinct(opened, selectors); err != nil {
			return nil, facts, usageErrorf("%s: space.runtime: %v", p.Path, err)
		}
	}
	runtimes, err := unavailable(ctx, opened, p.Space(facts), s)
	if err != nil {
		return nil, facts, err
	}
	if len(p.Runtimes()) > 0 {
		facts.Runtimes = runtimes
	} else {
		facts.Unavailable, facts.Assigned = runtimes[0].Unavailable, runtimes[0].Assigned
	}
	return opened, facts, nil
}

func runtimeInfo(b ortlib.Build) journal.RuntimeInfo {
	return journal.RuntimeInfo{Flavour: b.Flavour, Version: b.Version, Library: b.Library}
}

// runCampaign opens the journal and the runner, runs the campaign to its end, and prints the summary.
func runCampaign(ctx context.Context, con console, o profileOptions, setup profile.Setup, requests runner.Requests) (err error) {
	log, err := profile.OpenLog(setup, time.Now().UTC())
	if err != nil {
		return inputError(err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	settings := setup.Profile.Settings(setup.Facts)
	settings.Earlier = log.Earlier
	strategy, err := plan.New(setup.Profile.Search.Strategy, settings) // checkCampaign has found what it refuses
	if err != nil {
		return usageErrorf("%s: %v", o.file, err)
	}
	engines, err := newRunner(con, setup.Profile, log.Past)
	if err != nil {
		return err
	}
	defer engines.Close(context.WithoutCancel(ctx))

	observer, finish := observe(con, o, settings, log.Elapsed())
	announce(con, o, setup, log)
	campaign := profile.Campaign{Strategy: strategy, Trialer: profile.NewEngines(setup, engines, requests), Recorder: log, Observer: observer,
		Now: time.Now, Past: log.Past}
	outcome, err := campaign.Run(ctx)
	finish()
	if err != nil {
		return inputError(err)
	}
	return summarize(con, o, setup, outcome)
}

// observe returns the observer that the flags ask for, and the function that takes its bar off the terminal.
func observe(con console, o profileOptions, settings search.Settings, past time.Duration) (profile.Observer, func()) {
	if o.quiet {
		return quiet{}, func() {}
	}
	p := newProgress(con.err, settings.Goal, settings.Budget, past)
	return p, p.Close
}

// announce says what begins, or what goes on.
func announce(con console, o profileOptions, setup profile.Setup, log profile.Log) {
	if o.quiet {
		return
	}
	runtimes := []string{setup.Runtime.Title()}
	for _, r := range setup.Runtimes[min(1, len(setup.Runtimes)):] {
		runtimes = append(runtimes, fmt.Sprintf("%s (%s)", r.Version, r.Flavour))
	}
	fmt.Fprintf(con.err, "%s: %s on %s, results in %s\n", setup.Profile.Search.Strategy, setup.Subject.Name,
		strings.Join(runtimes, " and "), setup.Profile.Output)
	for _, line := range earlierLines(setup.Profile, earlierCampaigns(log.Earlier)) {
		fmt.Fprintln(con.err, line)
	}
	if n := len(log.Past); n > 0 {
		fmt.Fprintf(con.err, "going on after %d trials of an earlier run (%s)\n", n, clockText(log.Elapsed()))
	}
}

// summary is what `tuner profile --output json` prints.
type summary struct {
	Model       string  `json:"model"`
	Output      string  `json:"output"`
	Trials      int     `json:"trials"`
	Failed      int     `json:"failed"`
	Reason      string  `json:"reason"`
	Interrupted bool    `json:"interrupted"`
	Elapsed     float64 `json:"elapsed_seconds"`
	Leader      *leader `json:"leader,omitempty"` // best configuration within the constraints; its figures come from analyze
	// Statement is what the strategy claims of what it found, in sentences.
	Statement []string `json:"statement,omitempty"`
}

// leader is the best configuration so far, at its best load.
type leader struct {
	Candidate search.Candidate `json:"candidate"`
	Load      measure.Load     `json:"load"`
}

func summarize(con console, o profileOptions, setup profile.Setup, outcome profile.Outcome) error {
	status, end := outcome.Status, outcome.End
	s := summary{Model: setup.Subject.Name, Output: setup.Profile.Output, Trials: status.Trials, Failed: status.Failed,
		Reason: end.Reason, Interrupted: end.Interrupted, Elapsed: end.Elapsed.Seconds(), Statement: end.Statement}
	if l := status.Leader; l != nil {
		s.Leader = &leader{l.Candidate, l.Load}
	}
	if o.output == "json" {
		if err := writeJSON(con.out, s); err != nil {
			return err
		}
	} else {
		printSummary(con.out, s, status, setup.Profile.Goal)
	}
	if end.Interrupted {
		return withExit(exitInterrupted, fmt.Errorf("interrupted after %d trials; the same command goes on, and 'tuner analyze' uses what there is", s.Trials))
	}
	if s.Leader == nil {
		return withExit(exitInfeasible, errors.New("nothing satisfies the constraints; 'tuner analyze' tells what is nearest to them"))
	}
	return nil
}

func printSummary(out io.Writer, s summary, status profile.Status, goal search.Goal) {
	fmt.Fprintf(out, "%s: %d trials (%d failed) in %s; %s\n", s.Model, s.Trials, s.Failed, clockText(status.Elapsed), s.Reason)
	if l := status.Leader; l != nil {
		fmt.Fprintf(out, "best so far: %s at %s: %s\n", l.Candidate.Describe(), l.Load, figuresText(goal, l.Measurement))
	} else if s.Failed == s.Trials {
		fmt.Fprintln(out, "nothing could be measured")
	} else {
		fmt.Fprintln(out, "no configuration satisfied the constraints so far")
	}
	for _, sentence := range s.Statement {
		fmt.Fprintln(out, sentence)
	}
	fmt.Fprintf(out, "next: tuner analyze --input %s\n", s.Output)
}

// quiet is the observer of --quiet.
type quiet struct{}

func (quiet) TrialBegun(search.Trial, string)         {}
func (quiet) TrialEnded(search.Event, profile.Status) {}
