package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"tuner/ortlib"
	"tuner/precision"
	"tuner/profile"
	"tuner/runner"
	"tuner/search"
	"tuner/spec"
)

// makeVariants makes the precisions of a profile, and compares everything that serves with the original model, before the
// campaign begins. What it does is told on stderr.
func makeVariants(ctx context.Context, con console, o profileOptions, p spec.Profile, s profile.Subject, facts search.Facts, builds []ortlib.Build) (profile.Variants, error) {
	if p.Accuracy.Limit == nil {
		return profile.Variants{}, nil
	}
	data, calibration, err := profile.Data(p, s)
	if err != nil {
		return profile.Variants{}, err
	}
	say := func(text string) {
		if !o.quiet {
			fmt.Fprintln(con.err, text)
		}
	}
	for _, note := range data.Notes {
		say("accuracy.data: " + note)
	}
	cache, err := precision.UserCache()
	if err != nil {
		return profile.Variants{}, err
	}
	serving := byProvider(builds, facts)
	opener, err := newOpener(con, serving)
	if err != nil {
		return profile.Variants{}, err
	}
	maker, err := precision.NewMaker(s.Model, opener, precision.Options{
		Data: data, Calibration: calibration, CalibrationMethod: p.Accuracy.CalibrationMethod, Limit: p.Accuracy.Limit,
		MaxKept: p.Accuracy.MaxKept, Cache: cache, Tool: variantTool(serving), KeepIO: true, Progress: say,
	})
	if err != nil {
		return profile.Variants{}, sourceError(err)
	}
	try, err := newTrier(serving)
	if err != nil {
		return profile.Variants{}, err
	}
	start := time.Now()
	variants, err := profile.MakeVariants(ctx, p, s, facts, maker, try)
	if err != nil {
		return profile.Variants{}, sourceError(err)
	}
	announceVariants(say, variants, time.Since(start))
	return variants, nil
}

// sourceError gives the exit code of bad input to what is wrong with the model itself, or with the user's command.
func sourceError(err error) error {
	var source *precision.SourceError
	var command *precision.CommandError
	if errors.As(err, &source) || errors.As(err, &command) {
		return withExit(exitUsage, err)
	}
	return err
}

// newOpener runs models on the bundled engine. serving chooses the build for an execution provider.
func newOpener(con console, serving func(provider string) ortlib.Build) (precision.Opener, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find tuner's own program file: %w", err)
	}
	return precision.NewOpener(precision.ServeOptions{
		Runner: runner.Options{
			Launcher: runner.Bundled{Binary: binary, Start: engineStart, Drain: engineDrain},
			Dial:     runner.GRPC,
			Log:      slog.New(slog.NewTextHandler(con.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
		},
		Library: func(provider string) (string, error) { return serving(provider).Library, nil },
	}), nil
}

// announceVariants says what came of each variant.
func announceVariants(say func(string), v profile.Variants, took time.Duration) {
	for _, record := range v.Records {
		for _, note := range record.Notes {
			say(record.Precision + ": " + note)
		}
		for _, provider := range slices.Sorted(maps.Keys(record.Rejected)) {
			name := record.Precision
			if provider != "" {
				name += " on " + provider
			}
			say(fmt.Sprintf("%s is rejected: %s", name, briefly(record.Rejected[provider])))
		}
		if n := len(record.Kept); n > 0 {
			say(fmt.Sprintf("%s: %s to keep the limit of accuracy", record.Precision, countText(n, "operator stays in fp32", "operators stay in fp32")))
		}
	}
	say(fmt.Sprintf("variants are ready after %s", clockText(took)))
}

// byProvider chooses the build that answers for each execution provider: the first that has it.
func byProvider(builds []ortlib.Build, facts search.Facts) func(provider string) ortlib.Build {
	return func(provider string) ortlib.Build {
		for i, r := range facts.Runtimes {
			if _, out := r.Unavailable[provider]; !out {
				return builds[i]
			}
		}
		return builds[0]
	}
}

// variantTool names everything that a comparison depends on, beside the model and the data.
func variantTool(serving func(string) ortlib.Build) string {
	return fmt.Sprintf("tuner %s, %s", toolVersion(), serving("cpu").Name())
}

// newTrier asks child processes whether a provider works with a model file.
func newTrier(serving func(string) ortlib.Build) (profile.Trier, error) {
	p, err := newProber()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, provider, model string) (string, error) {
		out, _, err := p.tryProviders(ctx, serving(provider), []string{provider}, model)
		return out[provider], err
	}, nil
}
