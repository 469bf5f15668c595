package runner

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"tuner/engine/api"
	"tuner/ortlib"
)

// Launcher starts engines.
type Launcher interface {
	// Launch starts an engine on a model repository, with no model loaded, and returns when it serves. It blocks until
	// then or until the context ends. A *StartError says that the engine did not become ready, which is a result; any
	// other error is the campaign's own.
	Launch(ctx context.Context, repository, library string) (Engine, error)
}

// Engine is a running server. Its methods may be called from any goroutine.
type Engine interface {
	Address() api.Announcement
	PID() int              // of its process, 0 when unknown: then it has no CPU and memory figures
	Done() <-chan struct{} // closed when it has ended, by itself or by Stop
	Exit() Exit            // how it ended, once Done is closed
	LastWords() string     // the last lines of its log, "" when unknown
	// Stop ends it, first politely, and returns when it is gone. When the context ends it is killed at once. It may be
	// called again.
	Stop(ctx context.Context)
}

// Exit is how an engine ended.
type Exit struct {
	Text        string // "exit status 1", "signal: killed"
	OutOfMemory bool   // killed by the kernel for want of memory
}

// StartError says why an engine did not become ready.
type StartError struct{ Reason string }

func (e *StartError) Error() string { return "cannot start engine: " + e.Reason }

// Bundled launches the engine that is part of the tuner's own binary. Zero durations take the defaults.
type Bundled struct {
	Binary string        // the tuner's own path (os.Executable)
	Start  time.Duration // how long an engine may take to serve, without a model; default 30 s
	Drain  time.Duration // how long it may take to end after SIGTERM, before it is killed; default 10 s
}

// The defaults of Bundled.
const (
	defaultStart = 30 * time.Second
	defaultDrain = 10 * time.Second
)

// Launch starts `tuner serve` in explicit mode on ports of loopback that the kernel chooses.
func (b Bundled) Launch(ctx context.Context, repository, library string) (Engine, error) {
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
