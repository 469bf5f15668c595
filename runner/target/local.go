package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"tuner/engine/api"
	"tuner/internal/hostinfo"
	"tuner/runner"
)

// Local launches a tritonserver on this machine, or any program that takes its options. Zero
// durations take the defaults.
type Local struct {
	Program     string            // a path, or a name in PATH
	Args        []string          // further options
	Environment map[string]string // in addition to this process's own
	Log         string            // file to which its output is appended; "" for none
	// called once per launch whose log cannot be written, from another goroutine; may be nil
	Warn  func(error)
	Dial  runner.Dial   // client that asks whether it is ready
	Start time.Duration // limit until it is ready, without a model; default 60 s
	// limit for its end after SIGTERM, before it is killed; default 15 s
	Drain time.Duration
}

// The defaults of Local. A Triton with every backend takes longer than the bundled engine.
const (
	defaultLocalStart = time.Minute
	defaultLocalDrain = 15 * time.Second
)

const (
	readyEvery   = 50 * time.Millisecond // interval of the requests whether a server is ready
	readyTime    = time.Second           // limit for one such request
	portAttempts = 3                     // each with other ports
)

// Launch starts the program in explicit model control mode. The program announces no ports, so it
// gets loopback ports that were free just before. If another program has taken one meanwhile,
// Launch starts the program again on other ports. The program has its own ONNX Runtime and ignores
// the library.
func (l Local) Launch(ctx context.Context, s runner.Server) (runner.Engine, error) {
	for attempt := 1; ; attempt++ {
		at, err := freeAddresses()
		if err != nil {
			return nil, err
		}
		p, err := l.start(ctx, s, at)
		if err == nil {
			return p, nil
		}
		if attempt == portAttempts || !errors.As(err, new(*runner.StartError)) || !isTaken(at) {
			return nil, err
		}
	}
}

func (l Local) command(s runner.Server, at api.Announcement) *exec.Cmd {
	options := []string{"--model-repository=" + s.Repository, "--model-control-mode=explicit"}
	for _, listener := range []struct{ name, address string }{{"http", at.HTTP}, {"grpc", at.GRPC}, {"metrics", at.Metrics}} {
		host, port, _ := net.SplitHostPort(listener.address) // the address of a listener is valid
		options = append(options, fmt.Sprintf("--%s-address=%s", listener.name, host), fmt.Sprintf("--%s-port=%s", listener.name, port))
	}
	options = append(options, s.PolicyFlags()...)
	cmd := exec.Command(l.Program, append(options, l.Args...)...)
	cmd.Env = os.Environ()
	for _, name := range slices.Sorted(maps.Keys(l.Environment)) {
		cmd.Env = append(cmd.Env, name+"="+l.Environment[name])
	}
	return cmd
}

// isReady opens a new connection each time, since a refused one would wait before it tries again.
func (l Local) isReady(ctx context.Context, at api.Announcement) bool {
	client, err := l.Dial(at)
	if err != nil {
		return false
	}
	defer func() { _ = client.Close() }() // the client is no longer in use
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	isReady, err := client.ServerReady(ctx)
	return err == nil && isReady
}

// start starts the program. It waits until the program is ready, has exited, or has taken too long.
// A *runner.StartError means that it did not become ready; it has ended then.
func (l Local) start(ctx context.Context, s runner.Server, at api.Announcement) (*process, error) {
	cmd := l.command(s, at)
	p := &process{cmd: cmd, address: at, drain: cmp.Or(l.Drain, defaultLocalDrain), kills: hostinfo.MemoryKills(), done: make(chan struct{})}
	written := &output{tail: &p.tail, warn: l.Warn}
	if l.Log != "" {
		log, err := openLog(l.Log)
		if err != nil {
			return nil, fmt.Errorf("cannot keep the output of the server: %w", err)
		}
		p.lifeline = log // closed when it has exited
		written.log = log
	}
	cmd.Stdout, cmd.Stderr = written, written
	cmd.WaitDelay = outputDelay
	if err := p.start(); err != nil {
		_ = p.lifeline.Close() // nothing was written to it
		return nil, fmt.Errorf("cannot start server: %w", err)
	}
	patience := cmp.Or(l.Start, defaultLocalStart)
	waiting, cancel := context.WithTimeoutCause(ctx, patience, os.ErrDeadlineExceeded)
	defer cancel()
	for !l.isReady(waiting, at) {
		select {
		case <-p.done:
		case <-waiting.Done():
		case <-time.After(readyEvery):
			continue
		}
		p.handle(overdueEvent)
		p.Stop(waiting)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &runner.StartError{Reason: p.startReason(context.Cause(waiting), patience)}
	}
	p.handle(announcedEvent)
	return p, nil
}

// openLog opens a file for appending. It makes the folder if it does not exist.
func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
}

// freeAddresses returns three loopback addresses that are free now.
func freeAddresses() (api.Announcement, error) {
	var at [3]string
	for i := range at {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return api.Announcement{}, fmt.Errorf("cannot find a free port: %w", err)
		}
		// close only when all three are known, so that each is different
		defer func() { _ = l.Close() }()
		at[i] = l.Addr().String()
	}
	return api.Announcement{HTTP: at[0], GRPC: at[1], Metrics: at[2]}, nil
}

// isTaken reports whether another program listens at one of the addresses, after the server has
// ended.
func isTaken(at api.Announcement) bool {
	return slices.ContainsFunc([]string{at.HTTP, at.GRPC, at.Metrics}, func(address string) bool {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return true
		}
		_ = l.Close() // it was never used
		return false
	})
}
