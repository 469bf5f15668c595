package target

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"tuner/ort/ortlib"
	"tuner/runner"
)

// Engine are the options of a runner that launches a tuner's own engine and asks it over gRPC: that
// of a program file, or this program's for "". Warnings are written to a writer.
func Engine(program string, warnings io.Writer) (runner.Options, error) {
	if program == "" {
		own, err := os.Executable()
		if err != nil {
			return runner.Options{}, fmt.Errorf("cannot find tuner's own program file: %w", err)
		}
		program = own
	}
	absolute, err := filepath.Abs(program)
	if err != nil {
		return runner.Options{}, fmt.Errorf("cannot resolve %q: %w", program, err)
	}
	return runner.Options{
		Launcher: Bundled{Binary: absolute, Drain: hurriedDrain},
		Dial:     runner.GRPC,
		Wire:     runner.Over(runner.OverGRPC),
		Log:      slog.New(slog.NewTextHandler(warnings, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}, nil
}

// Bundled launches the engine that is part of the tuner's own binary. Zero durations take the
// defaults.
type Bundled struct {
	Binary string        // the tuner's own path (os.Executable)
	Start  time.Duration // how long an engine may take to serve, without a model; default 30 s
	Drain  time.Duration // how long it may take to end after SIGTERM, before it is killed; default 10 s
}

// The defaults of Bundled, and what verbs wait for the end of an engine: its loads have ended by
// then.
const (
	defaultStart = 30 * time.Second
	defaultDrain = 10 * time.Second
	hurriedDrain = 5 * time.Second
)

// Launch starts `tuner serve` in explicit mode on ports of loopback that the kernel chooses.
func (b Bundled) Launch(ctx context.Context, repository, library string) (runner.Engine, error) {
	cmd := exec.Command(b.Binary, "serve",
		"--model-control-mode=explicit", "--model-repository="+repository,
		"--http-port=0", "--grpc-port=0", "--metrics-port=0",
		"--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1",
		fmt.Sprintf("--announce-fd=%d", announceFD), fmt.Sprintf("--parent-fd=%d", parentFD),
		"--ort-library="+library)
	cmd.Env = ortlib.Build{Library: library, Dir: filepath.Dir(library)}.Environment(os.Environ())
	p, err := startProcess(ctx, cmd, cmp.Or(b.Start, defaultStart), cmp.Or(b.Drain, defaultDrain))
	if err != nil {
		return nil, err
	}
	return p, nil
}
