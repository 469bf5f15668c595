// Package preparation gets a campaign ready on this machine and runs it: it opens the model, the
// builds of ONNX Runtime and the servers, finds everything that would stop the campaign before
// minutes of conversions, and has the variants made. Then it opens the journal and the runners and
// hands them to the loop (package profile). `tuner profile` and `tuner run` call it, and `tuner
// ortsweep` uses its parts. It knows no flags, and it ranks nothing.
package preparation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/ort/ortlib"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/runner"
	"tuner/runner/target"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec"
)

// Options say how a campaign is run.
type Options struct {
	File     string // of the profile, as messages name it
	Library  string // of ONNX Runtime, or a build's name; "" for what environment or installation name
	Version  string // of this program
	DryRun   bool   // nothing is launched or written
	Quiet    bool   // no progress
	Messages io.Writer
}

// Campaign is a campaign that was checked as far as that can be done before its variants are made.
// Restore is to be called in the end.
type Campaign struct {
	Setup  profile.Setup  // without variants
	Builds []ortlib.Build // none in a dry run without ONNX Runtime
	Notes  []string       // of a dry run: what the campaign would do with servers that are not its own

	options  Options
	requests runner.Requests
	servers  target.Servers
}

// Open opens model, builds and servers of a profile, and finds everything that would stop the
// campaign.
func (o Options) Open(ctx context.Context, p spec.Profile) (c Campaign, err error) {
	c.options = o
	if c.servers, err = target.Open(p, o.Messages); err != nil {
		return c, err
	}
	if !o.DryRun { // what comes now would disturb a campaign that measures the same
		if err := profile.CheckFree(p); err != nil {
			return c, exit.OfFiles(err)
		}
	}
	if err := c.servers.CheckMetrics(ctx, o.File, p.Goal); err != nil {
		return c, exit.OrInterrupted(ctx, err)
	}
	host := hostinfo.Read(ctx)
	gpus := len(host.GPUs)
	if p.UsesBundled() {
		gpus = o.GPUs(ctx, host, p)
	}
	subject, err := profile.OpenSubject(p, gpus)
	if err != nil {
		return c, exit.OfFiles(err)
	}
	if c.requests, err = profile.Requests(p, subject); err != nil {
		return c, exit.OfFiles(fmt.Errorf("%s: load.inputs: %w", o.File, err))
	}
	if err := o.checkRuntimes(p); err != nil {
		return c, err
	}
	there := host
	if p.Runner.Mode == spec.RunnerRemote {
		there.GPUs = nil // they are this machine's
	}
	var facts search.Facts
	if c.Builds, facts, err = o.findBuilds(ctx, p, subject, profile.FactsOf(subject, there)); err != nil {
		return c, err
	}
	if facts, err = c.askServers(ctx, p, subject, facts); err == nil {
		err = c.settle(p, subject, facts, host)
	}
	if err != nil && !o.DryRun {
		err = errors.Join(err, c.Restore(ctx))
	}
	return c, err
}

// askServers asks what the servers have, and returns the facts with what they cannot load. A dry
// run loads nothing.
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
func (c *Campaign) settle(p spec.Profile, s profile.Subject, facts search.Facts, host hostinfo.Host) (err error) {
	if c.Setup, err = c.options.Setup(p, s, facts, c.Builds, host); err != nil {
		return err
	}
	c.Setup.Server, c.Setup.Finals = c.servers.Infos()
	return check(c.options.File, c.Setup)
}

// Setup collects what a campaign depends on, but for its variants. Without builds, as in a dry run,
// it names no runtime.
func (o Options) Setup(p spec.Profile, s profile.Subject, facts search.Facts, builds []ortlib.Build, host hostinfo.Host) (profile.Setup, error) {
	machine, err := json.Marshal(host)
	if err != nil {
		return profile.Setup{}, fmt.Errorf("cannot encode the facts of the machine: %w", err)
	}
	setup := profile.Setup{Profile: p, Subject: s, Facts: facts, Tool: o.Version, Machine: machine, Fingerprint: host.Fingerprint()}
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

// check finds mistakes in a space that only model and machine show, earlier campaigns that cannot
// be reused, an output folder that cannot be written and, where the runtime is known, the journal
// of another campaign in it.
func check(file string, s profile.Setup) error {
	if _, err := plan.New(s.Profile.Search.Strategy, s.Profile.Settings(s.Facts)); err != nil {
		return exit.Usagef("%s: %v", file, err)
	}
	if err := profile.CheckSpace(s.Profile, s.Subject, s.Facts); err != nil {
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

// isSettled reports whether it is known what serves the trials. A dry run does not know it without
// an ONNX Runtime, nor of servers that it does not launch.
func isSettled(s profile.Setup) bool {
	for _, server := range []*journal.ServerInfo{s.Server, s.Finals} {
		if server != nil && server.Mode != spec.RunnerBundled && server.Version == "" {
			return false
		}
	}
	return s.Runtime.Library != "" || !s.Profile.UsesBundled()
}

// Restore gives servers that are not the campaign's own back what they had.
func (c Campaign) Restore(ctx context.Context) error { return c.servers.Restore(ctx) }

// MakeVariants makes what the campaign measures beside the original model.
func (c Campaign) MakeVariants(ctx context.Context) (profile.Variants, error) {
	v, err := c.options.Variants(ctx, c.Setup.Profile, c.Setup.Subject, c.Setup.Facts, c.Builds)
	if err != nil {
		return v, exit.OrInterrupted(ctx, exit.OfFiles(err))
	}
	return v, nil
}

// Run opens the journal and the runners, and runs the campaign with its variants to its end.
func (c Campaign) Run(ctx context.Context, v profile.Variants) (outcome profile.Outcome, err error) {
	setup := c.Setup.With(v)
	log, err := profile.OpenLog(setup, time.Now().UTC())
	if err != nil {
		return profile.Outcome{}, exit.OfFiles(err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	settings := setup.Profile.Settings(setup.Facts)
	settings.Earlier = log.Earlier
	strategy, err := plan.New(setup.Profile.Search.Strategy, settings) // check has found what it refuses
	if err != nil {
		return profile.Outcome{}, exit.Usagef("%s: %v", c.options.File, err)
	}
	engines, finals := c.servers.Runners(log.Past)
	defer engines.Close(context.WithoutCancel(ctx))
	if finals != nil {
		defer finals.Close(context.WithoutCancel(ctx))
	}
	observer, finish := c.options.observe(settings, log.Elapsed())
	c.options.announce(setup, log)
	loop := profile.Campaign{
		Strategy: strategy, Trialer: profile.NewEngines(setup, engines, finals, c.requests), Recorder: log, Observer: observer,
		Now: time.Now, Past: log.Past,
	}
	outcome, err = loop.Run(ctx)
	finish()
	return outcome, exit.OfFiles(err)
}
