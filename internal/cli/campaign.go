package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"tuner/hostinfo"
	"tuner/internal/checksum"
	"tuner/journal"
	"tuner/ortlib"
	"tuner/profile"
	"tuner/runner"
	"tuner/search"
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
		Wire:     runner.Over(runner.OverGRPC),
		Log:      slog.New(slog.NewTextHandler(con.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}, nil
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

// runtimeInfos are builds as the journal has them. Libraries that the user named are told apart by their content, since another one may have taken
// the place of one that was measured.
func runtimeInfos(builds []ortlib.Build) ([]journal.RuntimeInfo, error) {
	var infos []journal.RuntimeInfo
	for _, b := range builds {
		info := journal.RuntimeInfo{Flavour: b.Flavour, Version: b.Version, Library: b.Library}
		if b.Flavour == ortlib.External {
			var err error
			if info.SHA256, err = checksum.File(b.Library); err != nil {
				return nil, fmt.Errorf("cannot read ONNX Runtime library: %w", err)
			}
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// gpusOf is how many GPUs a default configuration is made for: the machine's, or none where the build that serves it has no provider for them, as
// the engine counts them. A build that is not found or does not open is told of by whoever needs it.
func gpusOf(host hostinfo.Host, providers func() ([]string, error)) int {
	gpus := len(host.GPUs)
	if gpus == 0 {
		return 0
	}
	if list, err := providers(); err == nil && !slices.Contains(list, "cuda") {
		return 0
	}
	return gpus
}

// providersOf finds a build and asks a child process for the execution providers that it was compiled with.
func providersOf(ctx context.Context, find func() (ortlib.Build, error)) func() ([]string, error) {
	return func() ([]string, error) {
		build, err := find()
		if err != nil {
			return nil, err
		}
		p, err := newProber()
		if err != nil {
			return nil, err
		}
		answer := p.probe(ctx, build, "", "")
		if answer.Error != "" {
			return nil, errors.New(answer.Error)
		}
		return answer.Providers, nil
	}
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
