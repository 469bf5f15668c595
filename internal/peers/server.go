package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"sync"
	"syscall"
	"time"
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
	output *lockedBuffer
	ended  chan struct{} // closed when the process has ended
	err    error         // how it ended
}

// StartTriton starts a real Triton on a model repository and waits until it is ready. args are further options of
// tritonserver; the caller stops the server.
func (p *Peers) StartTriton(ctx context.Context, repository string, args ...string) (*Server, error) {
	return StartServer(ctx, p.Triton, repository, args...)
}

// StartTuner starts tuner's engine, binary, in the same way, with the ONNX Runtime that Triton's backend uses: both
// answer from the same library.
func (p *Peers) StartTuner(ctx context.Context, binary, repository string, args ...string) (*Server, error) {
	return start(ctx, binary, []string{"serve", "--ort-library=" + p.ORTLibrary}, repository, args)
}

// StartServer starts any other program that takes tritonserver's options.
func StartServer(ctx context.Context, program, repository string, args ...string) (*Server, error) {
	return start(ctx, program, nil, repository, args)
}

func start(ctx context.Context, program string, verb []string, repository string, args []string) (*Server, error) {
	ports, err := FreePorts(3)
	if err != nil {
		return nil, err
	}
	s := &Server{HTTP: ports[0], GRPC: ports[1], Metrics: ports[2], output: &lockedBuffer{}, ended: make(chan struct{})}
	all := append(verb, "--model-repository="+repository,
		"--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1",
		"--http-port="+portOf(s.HTTP), "--grpc-port="+portOf(s.GRPC), "--metrics-port="+portOf(s.Metrics))
	s.cmd = exec.Command(program, append(all, args...)...) // not bound to ctx: Stop ends it, and lets it drain
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", program, err)
	}
	s.PID = s.cmd.Process.Pid
	go func() {
		defer close(s.ended)
		s.err = s.cmd.Wait()
	}()
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s is not ready: %w; its output:\n%s", program, err, s.Output()), s.Stop())
	}
	return s, nil
}

// awaitReady polls until the server is ready: all models that it was asked to load are.
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
			return fmt.Errorf("it ended: %w", s.err)
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

// Output is what the server has printed so far.
func (s *Server) Output() string { return s.output.String() }

// Stop asks the server to end, and kills it when it does not. How it ends is no error.
func (s *Server) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		select {
		case <-s.ended:
			return nil // already, and its process has been reaped
		default:
			return fmt.Errorf("cannot stop process %d: %w", s.PID, err)
		}
	}
	select {
	case <-s.ended:
		return nil
	case <-time.After(stopTime):
	}
	err := s.cmd.Process.Kill()
	<-s.ended
	return err
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

// lockedBuffer keeps what a process prints, while others read it.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
