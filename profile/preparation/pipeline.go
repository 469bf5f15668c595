package preparation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/model/precision"
	"tuner/ort/addon"
	"tuner/profile"
	"tuner/profile/campaign"
	"tuner/search"
	"tuner/spec"
)

// openPipeline opens a pipeline with its stages, and checks its campaign.
func (c *Campaign) openPipeline(ctx context.Context, p spec.Profile, host hostinfo.Host) error {
	joint := search.Facts{Parts: map[string]search.Facts{}}
	var stages []profile.Setup
	for _, m := range p.Models {
		stage, err := c.openStage(ctx, m, host)
		if err != nil {
			return err
		}
		stages = append(stages, stage)
	}
	if err := c.openEnginesBuild(ctx, p); err != nil {
		return err
	}
	subject, err := profile.OpenPipeline(p, stages)
	if err != nil {
		return exit.OfFiles(err)
	}
	joint.Batching = subject.Config.GetMaxBatchSize() > 0
	for i, after := range profile.After(subject, stages) {
		stages[i].Facts.After = after
		joint.Parts[stages[i].Subject.Name], joint.Cores = stages[i].Facts, stages[i].Facts.Cores
	}
	requests, err := profile.Requests(p, subject)
	if err != nil {
		return exit.OfFiles(fmt.Errorf("%s: load.inputs: %w", c.options.File, err))
	}
	c.requests = append(c.requests, requests)
	subjects := make([]profile.Subject, len(stages))
	for i, stage := range stages {
		subjects[i] = stage.Subject
	}
	if err := checkMemory(p, subjects, hostinfo.UsableMemory()); err != nil {
		return exit.OfFiles(err)
	}
	setup, err := c.options.Setup(p, subject, joint, c.Builds, host)
	if err != nil {
		return err
	}
	setup.Parts = stages
	if err := c.settle(setup); err != nil {
		return err
	}
	return c.rehearsePipeline(ctx, p)
}

// openStage opens a stage of a pipeline. Its requests come from the pipeline, so it has none.
func (c *Campaign) openStage(ctx context.Context, p spec.Profile, host hostinfo.Host) (profile.Setup, error) {
	if profile.IsForeign(p) {
		subject, err := profile.OpenForeign(p)
		if err != nil {
			return profile.Setup{}, exit.OfFiles(err)
		}
		return c.options.Setup(p, subject, profile.FactsOf(subject, host), nil, host)
	}
	subject, err := profile.OpenSubject(p, c.options.Place(ctx, host, p))
	if err != nil {
		return profile.Setup{}, exit.OfFiles(err)
	}
	return c.openModel(ctx, p, subject, host)
}

// openEnginesBuild opens the build of the bundled engine where no stage looked for one.
func (c *Campaign) openEnginesBuild(ctx context.Context, p spec.Profile) error {
	isModel := func(stage spec.Profile) bool { return !profile.IsForeign(stage) }
	if !p.UsesBundled() || slices.ContainsFunc(p.Models, isModel) {
		return nil
	}
	builds, isMissing, err := c.options.locate(p)
	if isMissing || err != nil {
		return err
	}
	if c.Builds, err = openBuilds(ctx, builds); err != nil {
		return exit.OrInterrupted(ctx, err)
	}
	return nil
}

// rehearsePipeline lets the server load the pipeline in its default configuration and answer a request, as
// rehearse does for one model. A campaign that has begun is not rehearsed again.
func (c *Campaign) rehearsePipeline(ctx context.Context, p spec.Profile) error {
	if c.options.DryRun || campaign.Exists(p.Output) {
		return nil
	}
	scratch, err := durable.NewScratch("", "tuner-rehearsal-")
	if err != nil {
		return fmt.Errorf("cannot make a folder for the models: %w", err)
	}
	defer scratch.Close() // what stays is removed by the next one
	engine, finals := c.servers.Runners(nil)
	defer engine.Close(context.WithoutCancel(ctx))
	if finals != nil {
		defer finals.Close(context.WithoutCancel(ctx))
	}
	failure, err := profile.NewEngines(c.Setup.In(scratch.Dir), engine, nil, c.requests...).Rehearse(ctx)
	if err != nil {
		return exit.OrInterrupted(ctx, exit.OfFiles(err))
	}
	if failure != nil {
		reason, _, _ := strings.Cut(failure.Reason, "\n")
		return exit.Usagef("cannot tune the pipeline %q: it does not serve a request in its default configuration: %s%s", p.Pipeline, reason, operatorHint(c.Setup.Parts))
	}
	return nil
}

// operatorHint names a stage with an operator for which no library is named, as the end of an error; ""
// without one.
func operatorHint(stages []profile.Setup) string {
	for _, s := range stages {
		if op := precision.CustomOperator(s.Subject.Model); op != "" && len(s.Subject.Libraries.Operators) == 0 {
			return fmt.Sprintf("\n    hint: the stage %q uses the operator %s, which ONNX Runtime does not have: name the library with that operator in %s",
				s.Subject.Name, op, addon.FileField)
		}
	}
	return ""
}
