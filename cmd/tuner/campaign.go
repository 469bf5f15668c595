package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"tuner/ortlib"
	"tuner/profile"
	"tuner/runner"
	"tuner/search"
	"tuner/spec"
)

// How long an engine may take to serve, and to end after SIGTERM before it is killed.
const (
	engineStart = 30 * time.Second
	engineDrain = 5 * time.Second
)

// bundled are the options of a runner that launches this program's own engine, asks it over gRPC, and warns on stderr.
func bundled(con console) (runner.Options, error) {
	binary, err := os.Executable()
	if err != nil {
		return runner.Options{}, fmt.Errorf("cannot find tuner's own program file: %w", err)
	}
	return runner.Options{
		Launcher: runner.Bundled{Binary: binary, Start: engineStart, Drain: engineDrain},
		Dial:     runner.GRPC,
		Log:      slog.New(slog.NewTextHandler(con.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}, nil
}

// newRunner wires the server that a profile names for a campaign with past events. It must be closed.
func newRunner(con console, p spec.Profile, past []search.Event) (*runner.Runner, error) {
	options, err := bundled(con)
	if err != nil {
		return nil, err
	}
	options = withServer(options, p.Runner)
	options.Epoch = time.Now()
	if n := len(past); n > 0 {
		options.Epoch = options.Epoch.Add(-past[n-1].Elapsed)
		options.Launches = past[n-1].Measurement.Launch
	}
	return runner.New(options), nil
}

// openBuild has a child process open a build, so that a library that is none is found out before the campaign, and returns
// the build with the version that the library itself says.
func openBuild(ctx context.Context, build ortlib.Build) (ortlib.Build, error) {
	p, err := newProber()
	if err != nil {
		return ortlib.Build{}, err
	}
	answer := p.probe(ctx, build, "", "")
	if answer.Error != "" {
		return ortlib.Build{}, usageErrorf("cannot use the ONNX Runtime %s: %s\nname another with --ort-library, or run 'tuner runtime install cpu'",
			build.Name(), answer.Error)
	}
	build.Version = answer.Version
	return build, nil
}

// unavailable tries each execution provider of the space, and the default configuration's, with the original model on each
// build, each in a child process. A context that ends is the error.
func unavailable(ctx context.Context, builds []ortlib.Build, space search.Space, s profile.Subject) ([]search.RuntimeFacts, error) {
	p, err := newProber()
	if err != nil {
		return nil, err
	}
	var providers []string
	for _, k := range space.Knobs {
		for _, v := range k.Values {
			if k.Name == search.KnobExecutionProvider {
				providers = append(providers, string(v))
			}
		}
	}
	if base := string(space.Facts.Base[search.KnobExecutionProvider]); base != "" && !slices.Contains(providers, base) {
		providers = append(providers, base) // of the default, and of candidates that leave the knob alone
	}
	var facts []search.RuntimeFacts
	for _, build := range builds {
		out, took, err := p.tryProviders(ctx, build, providers, s.Files[0].Source.Path)
		if err != nil {
			return nil, err
		}
		facts = append(facts, search.RuntimeFacts{Name: build.Name(), Unavailable: out, Assigned: took})
	}
	return facts, nil
}
