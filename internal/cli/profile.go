package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tuner/hostinfo"
	"tuner/internal/terminal"
	"tuner/journal"
	"tuner/measure"
	"tuner/ortlib"
	"tuner/profile"
	"tuner/profile/campaign"
	"tuner/profile/dryrun"
	"tuner/profile/progress"
	"tuner/provider/probe"
	"tuner/runner"
	"tuner/runner/target"
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
	until      float64 // in place of the profile's; 0: the profile's
	foreign    foreignFlags
}

func newProfile(con console) *cobra.Command {
	var o profileOptions
	var until string
	cmd := verb(&cobra.Command{
		Use:   "profile -f profile.yaml",
		Short: "Search and measure configurations of a model",
		Long: `Searches configurations of an ONNX model. It launches the bundled engine with one configuration after the other, finds the highest
load of each within the constraints, and appends every measurement to <output>/journal.jsonl. Another server can be measured in place of
the engine, or confirm the finalists (fields runner and finals): a tritonserver that is launched, or one that runs already.

The file may be one of Triton Model Analyzer, as it is (docs/reference/model_analyzer.md). Its models are then profiled one after the other, and the
results of each are written as by Model Analyzer's own profile.

When interrupted (Ctrl-C), it keeps its measurements, and the same command continues. A second Ctrl-C ends it at once.
Then 'tuner analyze' ranks the configurations and writes the results.`,
		Example: "  tuner profile -f profile.yaml\n  tuner profile -f profile.yaml --dry-run\n  tuner profile -f profile.yaml --until 2%\n  tuner profile -f larger.yaml --earlier out/minilm",
		Args:    usageArgs(fileByFlag),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("until") {
				p, err := readFlag("until", until, untilLine)
				if err != nil {
					return err
				}
				o.until = p.Search.Until
			}
			return runProfile(cmd.Context(), con, o)
		},
	})
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "the profile (docs/reference/profile.md), or Model Analyzer's file")
	o.foreign.add(cmd.Flags())
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "list the candidates, those that were folded and why, and a time estimate; measure nothing")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "print no progress")
	cmd.Flags().StringVar(&o.output, "output", "text", "summary on stdout: text or json")
	cmd.Flags().StringArrayVar(&o.earlier, "earlier", nil, "learn from an earlier campaign on the same model, by its output folder, beside those of search.earlier; may be repeated")
	cmd.Flags().StringVar(&until, "until", "", "end before the budget when nothing else is likely to be better by more than this `share`, such as 2%, in place of search.until")
	cmd.Flags().StringVar(&o.ortLibrary, "ort-library", "", "ONNX Runtime library, or flavour[@version] of an installed one (default $TUNER_ORT_LIBRARY, then the installed cpu build)")
	return cmd
}

// runCampaign runs the campaign of one profile.
func runCampaign(ctx context.Context, con console, o profileOptions, p spec.Profile) (err error) {
	p.Search.Earlier = append(p.Search.Earlier, o.earlier...)
	p.Search.Until = cmp.Or(o.until, p.Search.Until)
	c, err := prepare(ctx, con, o, p)
	if err != nil {
		return err
	}
	if o.dryRun {
		return runDryRun(con, o, c.setup, c.notes)
	}
	defer func() { err = errors.Join(err, c.servers.Restore(ctx)) }()
	variants, err := c.makeVariants(ctx, con, o)
	if err != nil {
		return err
	}
	c.setup = c.setup.With(variants)
	outcome, err := c.run(ctx, con, o)
	if err != nil {
		return err
	}
	return summarize(con, o, c.setup, outcome)
}

// runDryRun prints what a campaign would do. It refuses what the comparison of variants would refuse; the rest has been checked
// (checkCampaign).
func runDryRun(con console, o profileOptions, s profile.Setup, servers []string) error {
	if _, _, err := variantData(s.Profile, s.Subject); err != nil {
		return inputError(err)
	}
	forecast, err := dryrun.New(s, servers)
	if err != nil {
		return err
	}
	if o.output == "json" {
		return writeJSON(con.out, forecast)
	}
	return forecast.Write(con.out)
}

// prepared is a campaign that was checked as far as that can be done before its variants are made. Its servers are to be restored in the end.
type prepared struct {
	setup    profile.Setup // without variants
	requests runner.Requests
	builds   []ortlib.Build // none in a dry run without ONNX Runtime
	servers  target.Servers
	notes    []string // of a dry run: what the campaign would do with servers that are not its own
}

// prepare opens model, builds and servers, and finds everything that would stop the campaign, before minutes of conversions.
func prepare(ctx context.Context, con console, o profileOptions, p spec.Profile) (c prepared, err error) {
	if c.servers, err = target.Open(p, con.err); err != nil {
		return c, err
	}
	if !o.dryRun { // what comes now would disturb a campaign that measures the same
		if err := profile.CheckFree(p); err != nil {
			return c, inputError(err)
		}
	}
	if err := c.servers.CheckMetrics(ctx, o.file, p.Goal); err != nil {
		return c, interruptedOr(ctx, err)
	}
	host := hostinfo.Read(ctx)
	gpus := len(host.GPUs)
	if p.UsesBundled() {
		gpus = gpusOf(ctx, host, defaultBuild(o, p))
	}
	subject, err := profile.OpenSubject(p, gpus)
	if err != nil {
		return c, inputError(err)
	}
	if c.requests, err = profile.Requests(p, subject); err != nil {
		return c, inputError(fmt.Errorf("%s: load.inputs: %w", o.file, err))
	}
	if err := checkRuntimes(o, p); err != nil {
		return c, err
	}
	there := host
	if p.Runner.Mode == spec.RunnerRemote {
		there.GPUs = nil // they are this machine's
	}
	builds, facts, err := findBuilds(ctx, con, o, p, subject, profile.FactsOf(subject, there))
	if err != nil {
		return c, err
	}
	c.builds = builds
	if o.dryRun {
		c.notes, err = c.servers.Describe(ctx, p, targetModel(subject))
	} else {
		defer func() {
			if err != nil {
				err = errors.Join(err, c.servers.Restore(ctx))
			}
		}()
		facts, err = c.servers.Ask(ctx, p, targetModel(subject), facts)
	}
	if err != nil {
		return c, err
	}
	if c.setup, err = newSetup(p, subject, facts, builds, host); err != nil {
		return c, err
	}
	c.setup.Server, c.setup.Finals = c.servers.Infos()
	return c, checkCampaign(o, c.setup)
}

// targetModel is what servers get of a subject first.
func targetModel(s profile.Subject) target.Model {
	return target.Model{Name: s.Name, Source: s.Files[0].Source, Config: s.Config}
}

// makeVariants makes what the campaign measures beside the original model.
func (c prepared) makeVariants(ctx context.Context, con console, o profileOptions) (profile.Variants, error) {
	v, err := makeVariants(ctx, con, o, c.setup.Profile, c.setup.Subject, c.setup.Facts, c.builds)
	if err != nil {
		return v, interruptedOr(ctx, inputError(err))
	}
	return v, nil
}

// findBuilds finds the ONNX Runtime builds that a campaign needs, and what those that serve trials can do with the model: none where other
// servers have their own, and nothing is compared here.
func findBuilds(ctx context.Context, con console, o profileOptions, p spec.Profile, s profile.Subject, facts search.Facts) ([]ortlib.Build, search.Facts, error) {
	if !p.UsesBundled() && p.Accuracy.Limit == nil {
		return nil, facts, nil
	}
	builds, missing := campaignBuilds(o, p)
	switch {
	case missing == nil:
		opened, facts, err := probeBuilds(ctx, builds, p, s, facts)
		if err != nil {
			return nil, facts, interruptedOr(ctx, err)
		}
		return opened, facts, nil
	case o.dryRun && !errors.As(missing, new(*ortlib.SameError)): // needs no ONNX Runtime, only knows more with one
		fmt.Fprintf(con.err, "%v\nthe plan is made without: what does not work here is not left out of it\n", missing)
		return builds, facts, nil
	}
	return nil, facts, withExit(exitUsage, missing)
}

// newSetup collects what a campaign depends on, but for its variants. Without builds, a dry run's, it names no runtime.
func newSetup(p spec.Profile, s profile.Subject, facts search.Facts, builds []ortlib.Build, host hostinfo.Host) (profile.Setup, error) {
	machine, err := json.Marshal(host)
	if err != nil {
		return profile.Setup{}, fmt.Errorf("cannot encode the facts of the machine: %w", err)
	}
	setup := profile.Setup{Profile: p, Subject: s, Facts: facts, Tool: toolVersion(), Machine: machine, Fingerprint: host.Fingerprint()}
	if p.DeployTarget == spec.TargetTriton { // all others are folded
		builds = builds[:min(1, len(builds))]
	}
	runtimes, err := runtimeInfos(builds)
	if err != nil || len(runtimes) == 0 {
		return setup, err
	}
	setup.Runtime = runtimes[0]
	if len(p.Runtimes()) > 0 {
		setup.Runtimes = runtimes
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
	if err := profile.CheckOutput(s.Profile); err != nil || !isSettled(s) {
		return inputError(err)
	}
	return inputError(profile.CheckLog(s))
}

// isSettled reports whether it is known what serves the trials: not so in a dry run without an ONNX Runtime, or of servers that it does not
// launch.
func isSettled(s profile.Setup) bool {
	for _, server := range []*journal.ServerInfo{s.Server, s.Finals} {
		if server != nil && server.Mode != spec.RunnerBundled && server.Version == "" {
			return false
		}
	}
	return s.Runtime.Library != "" || !s.Profile.UsesBundled()
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

// defaultBuild finds the first of them, which serves the default configuration.
func defaultBuild(o profileOptions, p spec.Profile) func() (ortlib.Build, error) {
	return func() (ortlib.Build, error) {
		builds, err := campaignBuilds(o, p)
		if err != nil {
			return ortlib.Build{}, err
		}
		return builds[0], nil
	}
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
	if !p.UsesBundled() { // they only compare variants
		return opened, facts, nil
	}
	prober, err := probe.New()
	if err != nil {
		return nil, facts, err
	}
	runtimes, err := prober.Facts(ctx, opened, p.Space(facts), s.Files[0].Source.Path)
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

// run opens the journal and the runners, and runs the campaign, with its variants, to its end.
func (c prepared) run(ctx context.Context, con console, o profileOptions) (outcome profile.Outcome, err error) {
	log, err := profile.OpenLog(c.setup, time.Now().UTC())
	if err != nil {
		return profile.Outcome{}, inputError(err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	settings := c.setup.Profile.Settings(c.setup.Facts)
	settings.Earlier = log.Earlier
	strategy, err := plan.New(c.setup.Profile.Search.Strategy, settings) // checkCampaign has found what it refuses
	if err != nil {
		return profile.Outcome{}, usageErrorf("%s: %v", o.file, err)
	}
	engines, finals := c.servers.Runners(log.Past)
	defer engines.Close(context.WithoutCancel(ctx))
	if finals != nil {
		defer finals.Close(context.WithoutCancel(ctx))
	}

	observer, finish := observe(con, o, settings, log.Elapsed())
	announce(con, o, c.setup, log)
	loop := profile.Campaign{Strategy: strategy, Trialer: profile.NewEngines(c.setup, engines, finals, c.requests), Recorder: log, Observer: observer,
		Now: time.Now, Past: log.Past}
	outcome, err = loop.Run(ctx)
	finish()
	return outcome, inputError(err)
}

// observe returns the observer that the flags ask for, and the function that takes its bar off the terminal.
func observe(con console, o profileOptions, settings search.Settings, past time.Duration) (profile.Observer, func()) {
	if o.quiet {
		return quiet{}, func() {}
	}
	p := progress.New(con.err, settings.Goal, settings.Budget, past)
	return p, p.Close
}

// announce says what begins, or what goes on.
func announce(con console, o profileOptions, setup profile.Setup, log campaign.Log) {
	if o.quiet {
		return
	}
	fmt.Fprintf(con.err, "%s: %s on %s, results in %s\n", setup.Profile.Search.Strategy, setup.Subject.Name, serverText(setup), setup.Profile.Output)
	for _, line := range dryrun.EarlierLines(setup.Profile, log.Earlier) {
		fmt.Fprintln(con.err, line)
	}
	if !log.Header().HasChecksums() {
		fmt.Fprintln(con.err, "warning: the journal is of an earlier version and has no checksums: those of new records cover it as it is now")
	}
	if n := len(log.Past); n > 0 {
		fmt.Fprintf(con.err, "going on after %d trials of an earlier run (%s)\n", n, clockText(log.Elapsed()))
	}
}

// serverText names what serves the trials: the builds of ONNX Runtime where it is the bundled engine.
func serverText(setup profile.Setup) string {
	text := setup.Server.String()
	if setup.Server == nil {
		runtimes := []string{fmt.Sprintf("%s (%s)", setup.Runtime.Version, setup.Runtime.Flavour)}
		for _, r := range setup.Runtimes[min(1, len(setup.Runtimes)):] {
			runtimes = append(runtimes, fmt.Sprintf("%s (%s)", r.Version, r.Flavour))
		}
		text = "ONNX Runtime " + strings.Join(runtimes, " and ")
	}
	if setup.Finals != nil {
		text += ", finals on " + setup.Finals.String()
	}
	return text
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

// proseWidth is the number of columns that sentences take.
const proseWidth = 80

// leader is the best configuration so far, at its best load.
type leader struct {
	Candidate search.Candidate `json:"candidate"`
	Load      measure.Load     `json:"load"`
	// Probability is that of all constraints to be kept, 0..1.
	Probability float64 `json:"probability"`
}

func summarize(con console, o profileOptions, setup profile.Setup, outcome profile.Outcome) error {
	status, end := outcome.Status, outcome.End
	s := summary{Model: setup.Subject.Name, Output: setup.Profile.Output, Trials: status.Trials, Failed: status.Failed,
		Reason: end.Reason, Interrupted: end.Interrupted, Elapsed: end.Elapsed.Seconds(), Statement: end.Statement}
	if answer := status.Answer(); answer != nil {
		s.Leader = &leader{answer.Candidate, answer.Load, answer.Holds}
	}
	if o.output == "json" {
		if err := writeJSON(con.out, s); err != nil {
			return err
		}
	} else {
		printSummary(con.out, s, outcome)
	}
	switch {
	case end.Interrupted && s.Trials == 0:
		return withExit(exitInterrupted, errors.New("interrupted in the first trial; the same command begins it again"))
	case end.Interrupted:
		return withExit(exitInterrupted, fmt.Errorf("interrupted after %d trials; the same command goes on, and 'tuner analyze' uses what there is", s.Trials))
	case s.Leader == nil && s.Failed == s.Trials:
		return withExit(exitInfeasible, errors.New("nothing satisfies the constraints: no configuration could be measured; 'tuner analyze' lists the failures"))
	case s.Leader == nil:
		return withExit(exitInfeasible, errors.New("nothing satisfies the constraints; 'tuner analyze' tells what is nearest to them"))
	}
	return nil
}

func printSummary(out io.Writer, s summary, outcome profile.Outcome) {
	status, end := outcome.Status, outcome.End
	fmt.Fprintf(out, "%s: %d trials (%d failed) in %s; %s\n", s.Model, s.Trials, s.Failed, clockText(end.Elapsed), s.Reason)
	if s.Trials == 0 { // interrupted in the first: nothing can be said, nor analyzed
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
			fmt.Fprintln(out, terminal.Fill(terminal.Plain(sentence), proseWidth))
		}
	}
	fmt.Fprintf(out, "next: tuner analyze --input %s\n", s.Output)
}

// readProfile reads and parses a profile of tuner's own; every mistake is a usage error.
func readProfile(path string) (spec.Profile, error) {
	text, err := readProfileText(path)
	if err != nil {
		return spec.Profile{}, err
	}
	p, err := spec.ParseProfile(filepath.Clean(path), text)
	return p, withExit(exitUsage, err)
}

// quiet is the observer of --quiet.
type quiet struct{}

func (quiet) Begun(search.Action)                     {}
func (quiet) BlockRefused(string)                     {}
func (quiet) TrialEnded(search.Event, profile.Status) {}
