package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"tuner/engine/api"
	"tuner/journal"
	"tuner/measure"
	"tuner/runner"
	"tuner/search"
	"tuner/spec"
)

// addForeignFlags adds the flags of Model Analyzer that stand for fields of its files.
func addForeignFlags(cmd *cobra.Command, f *foreignFlags) {
	cmd.Flags().StringVar(&f.checkpoints, "checkpoint-directory", "", "with Model Analyzer's file: folder of the campaigns, in place of its checkpoint_directory")
	cmd.Flags().StringVarP(&f.export, "export-path", "e", "", "with Model Analyzer's file: folder of the results, in place of its export_path")
}

// withServer makes options of the bundled engine those of the server that a profile names.
func withServer(o runner.Options, u spec.Runner) runner.Options {
	if u.Protocol == spec.ProtocolHTTP {
		o.Dial = runner.HTTP
	}
	switch u.Mode {
	case spec.RunnerLocal:
		o.Launcher = runner.Local{Server: u.Server, Args: u.Args, Environment: u.Environment, Log: u.Log}
	case spec.RunnerRemote:
		address := api.Announcement{GRPC: u.URL}
		if u.Protocol == spec.ProtocolHTTP {
			address = api.Announcement{HTTP: u.URL}
		}
		o.Launcher, o.Remote, o.Metrics = runner.Remote{Address: address, Dial: o.Dial}, u.IsRemote(), u.MetricsURL
	}
	return o
}

// findServer asks the server that a profile names what it is: a local one is started for that. A dry run only looks for the program.
func findServer(ctx context.Context, con console, o profileOptions, p spec.Profile, facts search.Facts) (journal.RuntimeInfo, search.Facts, error) {
	if o.ortLibrary != "" {
		return journal.RuntimeInfo{}, facts, usageErrorf("%s: runner.mode: %s contradicts --ort-library: the server has an ONNX Runtime of its own", o.file, p.Runner.Mode)
	}
	if p.Runner.IsRemote() {
		facts.Cores = 0 // of that machine, which nobody tells
	}
	if p.Runner.Mode == spec.RunnerLocal {
		if _, err := exec.LookPath(p.Runner.Server); err != nil {
			return journal.RuntimeInfo{}, facts, usageErrorf("%s: runner.server: cannot find %q: %v", o.file, p.Runner.Server, errors.Unwrap(err))
		}
	}
	if o.dryRun {
		return journal.RuntimeInfo{}, facts, nil
	}
	options, err := bundled(con)
	if err != nil {
		return journal.RuntimeInfo{}, facts, err
	}
	options = withServer(options, p.Runner)
	empty, err := os.MkdirTemp("", "tuner-empty-*")
	if err != nil {
		return journal.RuntimeInfo{}, facts, fmt.Errorf("cannot make an empty model repository: %w", err)
	}
	defer func() { _ = os.RemoveAll(empty) }()
	version, err := runner.ServerVersion(ctx, options.Launcher, options.Dial, empty)
	if err != nil {
		return journal.RuntimeInfo{}, facts, withExit(exitUsage, fmt.Errorf("%s: runner: %w", o.file, err))
	}
	server := journal.RuntimeInfo{Flavour: journal.FlavourServer, Version: version, Library: p.Runner.Server}
	if p.Runner.Mode == spec.RunnerRemote {
		server.Flavour, server.Library = journal.FlavourRemote, p.Runner.URL
	}
	return server, facts, nil
}

// checkRemote finds the metrics of a goal that a server does not tell which is not a process of this machine's.
func checkRemote(file string, p spec.Profile) error {
	if p.Runner.Mode != spec.RunnerRemote {
		return nil
	}
	var problems []error
	for _, m := range p.Goal.Metrics() {
		if m == measure.Memory || m == measure.CPU || m == measure.Energy && p.Runner.IsRemote() {
			problems = append(problems, fmt.Errorf("%s: %s: %s cannot be measured: a remote server does not tell it", file, goalField(p.Goal, m), m))
		}
	}
	return withExit(exitUsage, errors.Join(problems...))
}
