package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"tuner/internal/children"
	"tuner/lab/process"
)

const (
	startTime = 60 * time.Second // a Triton that loads MiniLM twice on a busy machine
	stopTime  = 20 * time.Second
	pollTime  = 20 * time.Millisecond
)

// Server is a running inference server on loopback.
type Server struct {
	HTTP    string // host:port
	GRPC    string
	Metrics string
	PID     int

	cmd    *exec.Cmd
	judged bool // it must end with exit status 0 when it is asked to
	output *process.Output
	ended  chan struct{} // closed when the process has ended
}

// StartTriton starts a real Triton on a model repository and waits until it is ready. args are
// further options of tritonserver. The caller stops the server.
func (p *Peers) StartTriton(ctx context.Context, repository string, args ...string) (*Server, error) {
	return StartServer(ctx, []string{p.Triton}, repository, args...)
}

// StartTuner starts tuner's engine, binary, in the same way, with the ONNX Runtime of Triton's
// backend: both answer from the same library. It must also end properly: see Stop.
func (p *Peers) StartTuner(ctx context.Context, binary, repository string, args ...string) (*Server, error) {
	s, err := StartServer(ctx, []string{binary, "serve", "--ort-library=" + p.ORTLibrary}, repository, args...)
	if err == nil {
		s.judged = true
	}
	return s, err
}

// StartServer starts any other server with tritonserver's options: a program with its first
// arguments.
func StartServer(ctx context.Context, server []string, repository string, args ...string) (*Server, error) {
	ports, err := FreePorts(3)
	if err != nil {
		return nil, err
	}
	s := &Server{HTTP: ports[0], GRPC: ports[1], Metrics: ports[2], output: &process.Output{}, ended: make(chan struct{})}
	all := append(slices.Clone(server[1:]), "--model-repository="+repository,
		"--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1",
		"--http-port="+portOf(s.HTTP), "--grpc-port="+portOf(s.GRPC), "--metrics-port="+portOf(s.Metrics))
	s.cmd = exec.Command(server[0], append(all, args...)...) // not bound to ctx: Stop ends it, and lets it drain
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	ended, err := children.Start(s.cmd)
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", server[0], err)
	}
	s.PID = s.cmd.Process.Pid
	go func() {
		defer close(s.ended)
		<-ended // ProcessState has the outcome
	}()
	if err := s.awaitReady(ctx); err != nil {
		if !s.hasEnded() {
			err = errors.Join(err, s.Stop())
		}
		return nil, fmt.Errorf("%s is not ready: %w; its output:\n%s", server[0], err, s.Output())
	}
	return s, nil
}

// awaitReady polls until the server is ready: all requested models are loaded.
func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		if s.ready(ctx) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.ended:
			return fmt.Errorf("it ended: %v", s.cmd.ProcessState)
		case <-time.After(pollTime):
		}
	}
}

func (s *Server) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.HTTP+"/v2/health/ready", nil)
	if err != nil {
		return false
	}
	request.Close = true // Triton does not end before its connections have
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// Output returns the server's output so far.
func (s *Server) Output() string { return s.output.String() }

// Stop asks the server to end, and kills it if it does not. It returns an error if the server had
// ended before. An engine of ours must also end without a kill and with exit status 0; other
// servers need not.
func (s *Server) Stop() error {
	if s.hasEnded() {
		return fmt.Errorf("process %d had ended before it was asked to: %v; its output:\n%s", s.PID, s.cmd.ProcessState, s.Output())
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot stop process %d: %w", s.PID, err)
	}
	var err error
	select {
	case <-s.ended:
	case <-time.After(stopTime):
		err = s.cmd.Process.Kill()
		<-s.ended
	}
	if s.judged && !s.cmd.ProcessState.Success() {
		return errors.Join(err, fmt.Errorf("process %d did not end well: %v", s.PID, s.cmd.ProcessState))
	}
	return err
}

// hasEnded reports whether the process has ended.
func (s *Server) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// FreePorts returns addresses that were free a moment ago.
func FreePorts(n int) ([]string, error) {
	var out []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("cannot find a free port: %w", err)
		}
		defer l.Close()
		out = append(out, l.Addr().String())
	}
	return out, nil
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address) // it comes from a listener
	return port
}
