package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"tuner/internal/hostinfo"
	"tuner/internal/testserver"
	"tuner/lab/bench/sidebyside"
)

// server is a testserver in its own process, which is this program again.
type server struct {
	testserver.Addresses
	cmd *exec.Cmd
}

// stopTime is the longest time that the server may take to end.
const stopTime = 10 * time.Second

// startServer starts a server with testserver's arguments. It ends with the context, or by stop.
func startServer(ctx context.Context, args ...string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	s := &server{cmd: exec.CommandContext(ctx, self, append([]string{asServer}, args...)...)}
	s.cmd.Stderr, s.cmd.WaitDelay = os.Stderr, stopTime
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start the server: %w", err)
	}
	if err := json.NewDecoder(out).Decode(&s.Addresses); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot read where the server listens: %w", err), s.stop())
	}
	return s, nil
}

// demand returns a load on the server.
func (s *server) demand(protocol string, window time.Duration, args ...string) sidebyside.Demand {
	address := s.HTTP
	if protocol == sidebyside.GRPC {
		address = s.GRPC
	}
	return sidebyside.Demand{Model: "law", Protocol: protocol, Address: address, Window: window, Args: args}
}

// stop ends the server.
func (s *server) stop() error {
	if err := s.cmd.Cancel(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot end the server: %w", err)
	}
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("the server did not end well: %w", err)
	}
	return nil
}

// cpu returns the CPU time that the server has used.
func (s *server) cpu() (time.Duration, error) {
	u, err := hostinfo.Process(s.cmd.Process.Pid)
	return u.CPU, err
}
