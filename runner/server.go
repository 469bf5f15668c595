package runner

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"tuner/engine/api"
)

// Local launches a tritonserver of the user's, real or a script that takes its options. Zero durations take the defaults.
type Local struct {
	Server      string            // program: a path, or a name in PATH
	Args        []string          // options beside the launcher's own
	Environment map[string]string // variables beside this process's own
	Log         string            // file that its output is appended to; "" for none
	Start       time.Duration     // how long it may take to be ready, without a model; default 60 s
	Drain       time.Duration     // how long it may take to end after SIGTERM, before it is killed; default 10 s
}

// defaultServerStart is longer than defaultStart: a script may start a container.
const defaultServerStart = time.Minute

// readyPoll is how often a starting server is asked whether it is ready.
const readyPoll = 25 * time.Millisecond

// Launch starts the server in explicit mode on ports of loopback that were free a moment ago: a tritonserver announces none. library
// means nothing to it.
func (l Local) Launch(ctx context.Context, repository, _ string) (Engine, error) {
	address, err := freeAddresses()
	if err != nil {
		return nil, err
	}
	args := []string{"--model-repository=" + repository, "--model-control-mode=explicit"}
	for _, listener := range []struct{ name, address string }{{"http", address.HTTP}, {"grpc", address.GRPC}, {"metrics", address.Metrics}} {
		host, port, err := net.SplitHostPort(listener.address)
		if err != nil {
			return nil, fmt.Errorf("cannot read the address of a free port: %w", err)
		}
		args = append(args, "--"+listener.name+"-address="+host, "--"+listener.name+"-port="+port)
	}
	cmd := exec.Command(l.Server, append(args, l.Args...)...)
	cmd.Env = os.Environ()
	for name, text := range l.Environment {
		cmd.Env = append(cmd.Env, name+"="+text)
	}
	p, err := startServer(ctx, cmd, address, l)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// freeAddresses finds ports of loopback that are free.
func freeAddresses() (api.Announcement, error) {
	var a api.Announcement
	for _, target := range []*string{&a.HTTP, &a.GRPC, &a.Metrics} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return a, fmt.Errorf("cannot find a free port: %w", err)
		}
		defer func() { _ = listener.Close() }() // after all are found, so that they differ
		*target = listener.Addr().String()
	}
	return a, nil
}

// startServer starts a command that serves at the addresses, and waits until it is ready, has exited, or has taken too long. A *StartError
// says that it did not become ready; it is then gone.
func startServer(ctx context.Context, cmd *exec.Cmd, address api.Announcement, l Local) (*process, error) {
	p := &process{cmd: cmd, address: address, drain: cmp.Or(l.Drain, defaultDrain), kills: memoryKills(), done: make(chan struct{})}
	var output io.Writer = &p.tail
	if l.Log != "" {
		log, err := openLog(l.Log)
		if err != nil {
			return nil, fmt.Errorf("cannot write the server's log: %w", err)
		}
		p.lifeline = log // closed when it has exited
		output = io.MultiWriter(log, &p.tail)
	}
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = processAttributes()
	cmd.WaitDelay = outputDelay
	if err := p.start(); err != nil {
		_ = p.lifeline.Close()
		return nil, fmt.Errorf("cannot start server: %w", err)
	}
	if err := p.awaitServing(ctx, cmp.Or(l.Start, defaultServerStart)); err != nil {
		return nil, err
	}
	return p, nil
}

// openLog opens a file to be appended to, and makes its folder where needed.
func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
}

// awaitServing asks the server until it is ready.
func (p *process) awaitServing(ctx context.Context, patience time.Duration) error {
	client := api.NewHTTP(p.address.HTTP)
	defer func() { _ = client.Close() }() // a Triton does not end before its connections have
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if ready, err := client.ServerReady(limited); err == nil && ready {
			p.handle(announcedEvent)
			return nil
		}
		select {
		case <-p.done:
			return &StartError{p.startReason(context.Canceled, patience)}
		case <-limited.Done():
			p.handle(overdueEvent)
			<-p.done
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return &StartError{p.startReason(os.ErrDeadlineExceeded, patience)}
		case <-time.After(readyPoll):
		}
	}
}

// Remote is a server that runs already, in explicit mode, with the model in its own repository. It is never stopped.
type Remote struct {
	Address api.Announcement // where it serves the protocol that it is talked to with
	Dial    Dial
}

// remoteAnswer is how long a remote server may take to say that it is ready.
const remoteAnswer = 10 * time.Second

// Launch asks whether the server is ready. Repository and library mean nothing to it.
func (r Remote) Launch(ctx context.Context, _, _ string) (Engine, error) {
	client, err := r.Dial(r.Address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	limited, cancel := context.WithTimeout(ctx, remoteAnswer)
	defer cancel()
	ready, err := client.ServerReady(limited)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("cannot reach the server at %s: %w", cmp.Or(r.Address.GRPC, r.Address.HTTP), err)
	case !ready:
		return nil, &StartError{"the server says that it is not ready"}
	}
	return remoteEngine{r.Address, make(chan struct{})}, nil
}

// remoteEngine is a server that is somebody else's.
type remoteEngine struct {
	address api.Announcement
	done    chan struct{} // never closed
}

func (e remoteEngine) Address() api.Announcement { return e.address }
func (e remoteEngine) PID() int                  { return 0 }
func (e remoteEngine) Done() <-chan struct{}     { return e.done }
func (e remoteEngine) Exit() Exit                { return Exit{Text: "unknown"} }
func (e remoteEngine) LastWords() string         { return "" }
func (e remoteEngine) Stop(context.Context)      {}

// ServerVersion starts a launcher's server on a repository without models, asks what it is, and stops it. It blocks until then. An error
// says that there is no such server.
func ServerVersion(ctx context.Context, l Launcher, dial Dial, repository string) (string, error) {
	engine, err := l.Launch(ctx, repository, "")
	if err != nil {
		return "", err
	}
	defer engine.Stop(context.WithoutCancel(ctx))
	client, err := dial(engine.Address())
	if err != nil {
		return "", err
	}
	defer func() { _ = client.Close() }()
	limited, cancel := context.WithTimeout(ctx, remoteAnswer)
	defer cancel()
	metadata, err := client.ServerMetadata(limited)
	if err != nil {
		return "", fmt.Errorf("cannot ask the server for its version: %w", err)
	}
	return metadata.Version, nil
}
