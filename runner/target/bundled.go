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
	"slices"
	"time"

	"tuner/internal/hostinfo"
	"tuner/ort/addon"
	"tuner/ort/ortlib"
	"tuner/runner"
)

// Engine returns the options of a runner that launches tuner's own engine and controls it over
// gRPC. program is its file; "" is this program's own. It opens the libraries. Warnings go to the
// writer.
func Engine(program string, libraries addon.Libraries, warnings io.Writer) (runner.Options, error) {
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
	group := hostinfo.MemoryLimit()
	return runner.Options{
		Launcher: Bundled{Binary: absolute, Libraries: libraries, Drain: hurriedDrain},
		Dial:     runner.GRPC,
		Wire:     runner.Over(runner.OverGRPC),
		Group:    group,
		Refuses:  group > 0 && refuses(),
		Log:      slog.New(slog.NewTextHandler(warnings, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}, nil
}

// Bundled launches the engine that is part of tuner's own binary. Zero durations take the defaults.
type Bundled struct {
	Binary string // tuner's own path (os.Executable)
	// Libraries that an engine opens beside ONNX Runtime, by absolute paths
	Libraries addon.Libraries
	Start     time.Duration // limit until an engine serves, without a model; default 30 s
	Drain     time.Duration // limit for its end after SIGTERM, before it is killed; default 10 s
}

// The defaults of Bundled. Verbs use the last one to wait for the end of an engine, whose loads
// have ended by then.
const (
	defaultStart = 30 * time.Second
	defaultDrain = 10 * time.Second
	hurriedDrain = 5 * time.Second
)

// Launch starts `tuner serve` in explicit mode, on loopback ports that the kernel chooses.
func (b Bundled) Launch(ctx context.Context, s runner.Server) (runner.Engine, error) {
	options := []string{"serve",
		"--model-control-mode=explicit", "--model-repository=" + s.Repository,
		"--http-port=0", "--grpc-port=0", "--metrics-port=0",
		"--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1",
		fmt.Sprintf("--announce-fd=%d", announceFD), fmt.Sprintf("--parent-fd=%d", parentFD),
		"--ort-library=" + s.Library}
	cmd := exec.Command(b.Binary, slices.Concat(options, s.PolicyFlags(), b.Libraries.Flags())...)
	cmd.Env = ortlib.Build{Library: s.Library, Dir: filepath.Dir(s.Library)}.Environment(os.Environ())
	p, err := startProcess(ctx, cmd, cmp.Or(b.Start, defaultStart), cmp.Or(b.Drain, defaultDrain))
	if err != nil {
		return nil, err
	}
	return p, nil
}
