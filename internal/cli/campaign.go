package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"tuner/hostinfo"
	"tuner/internal/checksum"
	"tuner/journal"
	"tuner/ortlib"
	"tuner/provider/probe"
	"tuner/runner"
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

// openBuild has a child process open a build (probe.Open). A build that does not open is the user's
// to correct.
func openBuild(ctx context.Context, build ortlib.Build) (ortlib.Build, error) {
	p, err := probe.New()
	if err != nil {
		return ortlib.Build{}, err
	}
	opened, err := p.Open(ctx, build)
	if err != nil {
		return ortlib.Build{}, withExit(exitUsage, err)
	}
	return opened, nil
}

// gpusOf is how many GPUs a default configuration is made for (probe.GPUs).
func gpusOf(ctx context.Context, host hostinfo.Host, find func() (ortlib.Build, error)) int {
	p, err := probe.New()
	if err != nil {
		return len(host.GPUs) // the error is reported where a build is opened
	}
	return p.GPUs(ctx, host, find)
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
