package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"tuner/analyze"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/runner"
	"tuner/runner/target"
	"tuner/search"
	"tuner/spec"
)

// contest is a campaign opened for a comparison of two ways of serving.
type contest struct {
	result  analyze.Result
	a, b    *side // a: the campaign's way; b: the deployed repository
	runners []*runner.Runner
}

// side is one way of serving, under one load.
type side struct {
	name    string
	trial   search.Trial
	measure func(ctx context.Context, trial search.Trial) (measure.Measurement, error)
	runner  *runner.Runner
}

// run measures the side on a fresh engine, which ends afterwards. So the other side has the machine
// for itself.
func (s *side) run(ctx context.Context) (figures, error) {
	m, err := s.measure(ctx, s.trial)
	s.runner.Close(context.WithoutCancel(ctx))
	if err != nil {
		return figures{}, err
	}
	return newFigures(m)
}

func (c *contest) close(ctx context.Context) {
	for _, r := range c.runners {
		r.Close(context.WithoutCancel(ctx))
	}
}

// reported returns the throughput of the winner at its best load, as analyze reports it.
func (c *contest) reported() measure.Estimate {
	winner, _ := c.result.Winner() // open has checked it
	return winner.Best.Values[measure.Throughput]
}

// open reads the campaign and prepares both sides.
func open(o options) (*contest, error) {
	campaign, err := analyze.Replay(o.campaign)
	if err != nil {
		return nil, err
	}
	goal := campaign.Profile.Goal
	result, err := analyze.Analyze(campaign, analyze.Options{Goal: &goal})
	if err != nil {
		return nil, err
	}
	winner, ok := result.Winner()
	if !ok {
		return nil, fmt.Errorf("cannot redeploy the campaign in %q: no configuration satisfies its constraints", o.campaign)
	}
	setup, requests, err := subject(campaign)
	if err != nil {
		return nil, err
	}
	contender := winner
	if o.against == againstDefault {
		if contender = result.Default(); contender.Best == nil {
			return nil, fmt.Errorf("cannot compare with the default in the campaign in %q: it was not measured", o.campaign)
		}
	}
	return newContest(o, result, setup, requests, contender, winner)
}

// subject opens the model of the campaign, and makes its requests again.
func subject(c analyze.Campaign) (profile.Setup, runner.Requests, error) {
	// GPUs only matter for the default configuration, which the journal has
	opened, err := profile.OpenSubject(c.Profile, profile.Place{})
	if err != nil {
		return profile.Setup{}, nil, err
	}
	if opened.Config, err = modelconfig.Parse("base_config of the journal", []byte(c.Header.BaseConfig)); err != nil {
		return profile.Setup{}, nil, err
	}
	for i, f := range opened.Files {
		if i >= len(c.Header.Models) || c.Header.Models[i].SHA256 != f.Source.Digest {
			return profile.Setup{}, nil, fmt.Errorf("cannot measure %q again: it is not the file that the campaign measured", f.Source.Path)
		}
	}
	requests, err := profile.Requests(c.Profile, opened)
	return profile.Setup{Profile: c.Profile, Subject: opened, Facts: c.Facts, Runtime: c.Header.Runtime}, requests, err
}

func newContest(o options, result analyze.Result, setup profile.Setup, requests runner.Requests, contender, winner analyze.Config) (*contest, error) {
	binary, err := filepath.Abs(o.tuner)
	if err != nil {
		return nil, fmt.Errorf("cannot find the tuner program %q: %w", o.tuner, err)
	}
	repository, err := filepath.Abs(filepath.Join(o.campaign, "repository"))
	if err != nil {
		return nil, fmt.Errorf("cannot find the repository of %q: %w", o.campaign, err)
	}
	options := runner.Options{Dial: runner.GRPC, Wire: runner.Over(runner.OverGRPC), Log: slog.New(slog.DiscardHandler), Epoch: time.Now()}
	if setup.Profile.Runner.Protocol == spec.ProtocolHTTP {
		options.Dial, options.Wire = runner.HTTP, runner.Over(runner.OverHTTP)
	}
	bundled := target.Bundled{Binary: binary}

	options.Launcher = bundled
	a := &side{name: o.against, trial: trial(o, contender), runner: runner.New(options)}
	a.measure = profile.NewEngines(setup, a.runner, nil, requests).Measure

	options.Launcher = runner.Loaded{Launcher: bundled, Dial: options.Dial, Models: []string{result.Header.Model}}
	b := &side{name: "deployed", trial: trial(o, winner), runner: runner.New(options)}
	b.measure = deployment{repository, setup.Runtime, winner, requests, b.runner, result.Header.Model}.measure
	return &contest{result: result, a: a, b: b, runners: []*runner.Runner{a.runner, b.runner}}, nil
}

// trial returns a configuration at its best load.
func trial(o options, c analyze.Config) search.Trial {
	return search.Trial{Candidate: c.Candidate, Load: c.Best.Load, Windows: 1, Window: o.window, Fresh: true, Phase: search.PhaseFinal}
}

// deployment measures the deployed repository.
type deployment struct {
	repository string
	runtime    journal.RuntimeInfo
	winner     analyze.Config
	requests   runner.Requests
	runner     *runner.Runner
	model      string
}

func (d deployment) measure(ctx context.Context, t search.Trial) (measure.Measurement, error) {
	return d.runner.Measure(ctx, runner.Job{
		Pool: "deployed", Repository: d.repository, Library: d.runtime.Library, Model: d.model,
		Instances: d.winner.Setup.Instances, MaxBatch: d.winner.Setup.MaxBatchSize, Requests: d.requests,
		Load: t.Load, Windows: t.Windows, Window: t.Window, Fresh: t.Fresh,
		Percentiles: []measure.Metric{measure.LatencyP99},
	})
}
