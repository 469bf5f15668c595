// Package preparation prepares a campaign on this machine and runs it. It opens the model, the
// builds of ONNX Runtime and the servers. It detects all problems that would stop the campaign,
// before conversions that take minutes. It has the variants made. Then it opens the journal and the
// runners and passes them to the loop (package profile).
//
// `tuner profile` and `tuner run` call it, and `tuner ortsweep` uses its parts. It does not know
// flags, and ranks nothing.
package preparation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/ort/ortlib"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/profile/spans"
	"tuner/runner"
	"tuner/runner/target"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec"
)

// Options configure a run of a campaign.
type Options struct {
	File string // path of the profile, for messages
	// Library: path of ONNX Runtime, or a build's name; "" for that of the environment or the
	// installation
	Library  string
	Version  string // program version
	DryRun   bool   // launch and write nothing
	Quiet    bool   // show no progress
	Messages io.Writer

	model string // name before messages about one of several models
}

// Campaign is a campaign after all checks that are possible before its variants are made. The
// caller must call Restore at the end.
type Campaign struct {
	Setup  profile.Setup  // without variants
	Builds []ortlib.Build // empty in a dry run without ONNX Runtime
	// Notes: of a dry run: what the campaign would do with servers that are not its own
	Notes []string

	options  Options
	requests []runner.Requests // of each model, or of the pipeline
	servers  target.Servers
}

// Open opens model, builds and servers of a profile, and detects all problems that would stop the
// campaign.
func (o Options) Open(ctx context.Context, p spec.Profile) (c Campaign, err error) {
	c.options = o
	if c.servers, err = target.Open(p, o.Messages); err != nil {
		return c, err
	}
	if !o.DryRun { // the next steps would disturb a campaign that is measuring there
		if err := profile.CheckFree(p); err != nil {
			return c, exit.OfFiles(err)
		}
	}
	if err := c.servers.CheckMetrics(ctx, o.File, p.Goal); err != nil {
		return c, exit.OrInterrupted(ctx, err)
	}
	host := hostinfo.Read(ctx)
	switch {
	case p.IsPipeline():
		err = c.openPipeline(ctx, p, host)
	case p.IsSeveral():
		err = c.openSeveral(ctx, p, host)
	default:
		err = c.openOne(ctx, p, host)
	}
	switch {
	case err != nil && !o.DryRun:
		err = errors.Join(err, c.Restore(ctx))
	case err == nil && o.DryRun:
		err = c.checkData() // a campaign makes its variants next
	}
	return c, err
}

// CheckAll finds the mistakes in campaigns that run one after the other, before the first one, which may
// take hours. It launches and writes nothing. Opening each campaign repeats the messages.
func (o Options) CheckAll(ctx context.Context, list []spec.Profile) error {
	o.DryRun, o.Messages = true, io.Discard
	for _, p := range list {
		if _, err := o.Open(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// checkData refuses what the comparison of variants would refuse.
func (c Campaign) checkData() error {
	for _, model := range c.Setup.Each() {
		if _, _, err := Data(model.Profile, model.Subject); err != nil {
			return exit.OfFiles(err)
		}
	}
	return nil
}

// openOne opens the model of a profile, and checks its campaign.
func (c *Campaign) openOne(ctx context.Context, p spec.Profile, host hostinfo.Host) error {
	subject, err := c.openSubject(ctx, c.options.File, p, host)
	if err != nil {
		return err
	}
	setup, err := c.openModel(ctx, p, subject, host)
	if err != nil {
		return err
	}
	if err := c.settle(setup); err != nil {
		return err
	}
	return c.rehearse(ctx, p, setup.Subject, setup.Facts)
}

// openSubject opens a model with its requests. where names the profile in messages.
func (c *Campaign) openSubject(ctx context.Context, where string, p spec.Profile, host hostinfo.Host) (profile.Subject, error) {
	subject, err := profile.OpenSubject(p, c.options.Place(ctx, host, p))
	if err != nil {
		return subject, exit.OfFiles(err)
	}
	requests, err := profile.Requests(p, subject)
	if err != nil {
		return subject, exit.OfFiles(fmt.Errorf("%s: load.inputs: %w", where, err))
	}
	c.requests = append(c.requests, requests)
	return subject, nil
}

// openModel opens the builds that serve a model, and asks the servers for their abilities.
func (c *Campaign) openModel(ctx context.Context, p spec.Profile, subject profile.Subject, host hostinfo.Host) (profile.Setup, error) {
	o := c.options
	if err := o.checkRuntimes(p); err != nil {
		return profile.Setup{}, err
	}
	there := host
	if p.Runner.Mode == spec.RunnerRemote {
		there.GPUs = nil // they belong to this machine
	}
	builds, facts, err := o.findBuilds(ctx, p, subject, profile.FactsOf(subject, there))
	if err != nil {
		return profile.Setup{}, err
	}
	if len(builds) > 0 { // of several models, one may need none
		c.Builds = builds
	}
	if facts, err = c.askServers(ctx, p, subject, facts); err != nil {
		return profile.Setup{}, err
	}
	return o.Setup(p, subject, facts, c.Builds, host)
}

// askServers asks the servers for their capabilities. It returns the facts with what they cannot
// load. A dry run loads nothing.
func (c *Campaign) askServers(ctx context.Context, p spec.Profile, s profile.Subject, facts search.Facts) (search.Facts, error) {
	model := target.Model{Name: s.Name, Source: s.Files[0].Source, Config: s.Config}
	if c.options.DryRun {
		var err error
		c.Notes, err = c.servers.Describe(ctx, p, model)
		return facts, err
	}
	return c.servers.Ask(ctx, p, model, facts)
}

// settle completes the setup and checks it.
func (c *Campaign) settle(setup profile.Setup) error {
	c.Setup = setup
	c.Setup.Server, c.Setup.Finals = c.servers.Infos()
	return check(c.options.File, c.Setup)
}

// Setup collects everything on which a campaign depends, except its variants. Without builds, as in
// a dry run, it names no runtime.
func (o Options) Setup(p spec.Profile, s profile.Subject, facts search.Facts, builds []ortlib.Build, host hostinfo.Host) (profile.Setup, error) {
	machine, err := json.Marshal(host)
	if err != nil {
		return profile.Setup{}, fmt.Errorf("cannot encode the facts of the machine: %w", err)
	}
	setup := profile.Setup{Profile: p, Subject: s, Facts: facts, Tool: o.Version, Machine: machine, Fingerprint: host.Fingerprint()}
	placement := hostinfo.ReadPlacement(host)
	setup.Placement = &placement
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

// check detects mistakes in a space that only model and machine show. It also detects earlier
// campaigns that cannot be reused, and an output folder that cannot be written. If the runtime is
// known, it also detects the journal of another campaign there.
func check(file string, s profile.Setup) error {
	if _, err := plan.New(s.Profile.Search.Strategy, s.Profile.Settings(s.Facts)); err != nil {
		return exit.Usagef("%s: %v", file, err)
	}
	if err := s.CheckSpace(); err != nil {
		return exit.OfFiles(err)
	}
	if _, err := profile.Reuse(s); err != nil {
		return exit.OfFiles(err)
	}
	if err := profile.CheckOutput(s.Profile); err != nil || !isSettled(s) {
		return exit.OfFiles(err)
	}
	return exit.OfFiles(profile.CheckLog(s))
}

// isSettled reports whether the server of the trials is known. A dry run does not know it without
// an ONNX Runtime, or if it does not launch the server.
func isSettled(s profile.Setup) bool {
	for _, server := range []*journal.ServerInfo{s.Server, s.Finals} {
		if server != nil && server.Mode != spec.RunnerBundled && server.Version == "" {
			return false
		}
	}
	return s.Runtime.Library != "" || !s.Profile.UsesBundled()
}

// Restore returns servers that are not the campaign's own to their earlier state.
func (c Campaign) Restore(ctx context.Context) error { return c.servers.Restore(ctx) }

// MakeVariants makes the variants that the campaign measures in addition to the original models. It
// returns those of each model, in the order of the setup's parts. All models together take as much time as
// one may.
func (c Campaign) MakeVariants(ctx context.Context) ([]profile.Variants, error) {
	var list []profile.Variants
	left := 0
	for _, s := range c.Setup.Each() {
		if profile.Compares(s.Profile, s.Facts) {
			left++
		}
	}
	all, begin := profile.VariantTime(c.Setup.Profile.Search.Budget.Time), time.Now()
	for _, s := range c.Setup.Each() {
		o := c.options
		if c.Setup.IsSeveral() {
			o.model = s.Subject.Name + ": "
		}
		v, err := o.variantsWithin(ctx, s.Profile, s.Subject, s.Facts, c.Builds, shareOf(all, time.Since(begin), max(left, 1)))
		if err != nil {
			return nil, exit.OrInterrupted(ctx, exit.OfFiles(err))
		}
		if profile.Compares(s.Profile, s.Facts) {
			left--
		}
		list = append(list, v)
	}
	return list, nil
}

// with returns the setup with the variants of its models.
func (c Campaign) with(list []profile.Variants) profile.Setup {
	if c.Setup.IsSeveral() {
		return c.Setup.WithParts(list)
	}
	return c.Setup.With(list[0])
}

// Run opens the journal and the runners. It runs the campaign with its variants (MakeVariants) to its
// end.
func (c Campaign) Run(ctx context.Context, variants []profile.Variants) (outcome profile.Outcome, err error) {
	setup := c.with(variants)
	log, err := profile.OpenLog(setup, time.Now().UTC())
	if err != nil {
		return profile.Outcome{}, exit.OfFiles(err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	settings := setup.Profile.Settings(setup.Facts)
	settings.Earlier = log.Earlier
	strategy, err := plan.New(setup.Profile.Search.Strategy, settings) // check has reported what it refuses
	if err != nil {
		return profile.Outcome{}, exit.Usagef("%s: %v", c.options.File, err)
	}
	engines, finals := c.servers.Runners(log.Past)
	defer engines.Close(context.WithoutCancel(ctx))
	if finals != nil {
		defer finals.Close(context.WithoutCancel(ctx))
	}
	c.options.announce(setup, log)
	watch := c.options.observe(setup, settings, log.Elapsed())
	defer watch.Close() // also after a panic, whose report belongs on the ordinary screen
	observer, ended, err := spans.Around(ctx, watch, c.options.about(setup, log), slog.New(slog.NewTextHandler(c.options.Messages, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return profile.Outcome{}, exit.Usagef("%v", err)
	}
	loop := profile.Campaign{
		Strategy: strategy, Trialer: profile.NewEngines(setup, engines, finals, c.requests...), Recorder: log, Observer: observer,
		More: watch.More, IsEnough: watch.IsEnough, Now: time.Now, Past: log.Past,
	}
	outcome, err = loop.Run(ctx)
	ended(outcome, err)
	return outcome, exit.OfFiles(err)
}
