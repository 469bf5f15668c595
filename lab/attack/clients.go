package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// privacy: information that tuner's programs send to others.
func privacy() []attack {
	return []attack{{
		"A1", "who does ONNX Runtime call?", "no address but loopback, no name looked up, nothing in the home folder",
		func(ctx context.Context, s *scene) (string, error) {
			if _, err := exec.LookPath("strace"); err != nil {
				return "", notRun("strace is not installed")
			}
			if err := s.add("simple", "simple", ""); err != nil {
				return "", err
			}
			// strace as a prefix of the command, with its output in the scene
			v, err := s.serve(ctx, `set -- strace -f -qq -e trace=connect,sendto,sendmmsg -o "$PWD/trace" "$@"`, []string{"simple"})
			if err != nil {
				return "", err
			}
			time.Sleep(3 * time.Second)
			if err := v.adds(ctx, 20*time.Second); err != nil {
				return "", err
			}
			if _, err := v.end(); err != nil {
				return "", err
			}
			return s.quiet("trace")
		},
	}}
}

// quiet checks that a trace of system calls contacts nobody.
func (s *scene) quiet(trace string) (string, error) {
	lines, err := s.lines(trace)
	if err != nil {
		return "", err
	}
	for _, line := range lines {
		isOut := strings.Contains(line, "AF_INET") && !strings.Contains(line, `"127.0.0.1"`) && !strings.Contains(line, `"::1"`)
		if isOut || strings.Contains(line, "htons(53)") || strings.Contains(line, "nscd") {
			return "", fmt.Errorf("the server called: %s", line)
		}
	}
	left, err := filepath.Glob(s.path("home", ".*"))
	if more, _ := filepath.Glob(s.path("home", "*")); err == nil && len(left)+len(more) > 0 {
		return "", fmt.Errorf("in the home folder: %v %v", left, more)
	}
	return fmt.Sprintf("%d system calls that could reach somebody, none does", len(lines)), err
}

// connections: clients that only connect, or are slow.
func connections() []attack {
	exhaust := func(address func(*server) string) func(ctx context.Context, s *scene) (string, error) {
		return func(ctx context.Context, s *scene) (string, error) {
			if err := s.add("simple", "simple", ""); err != nil {
				return "", err
			}
			v, err := s.serve(ctx, "ulimit -n 300", []string{"simple"})
			if err != nil {
				return "", err
			}
			conns, err := crowd(ctx, 400, address(v), "")
			if err != nil {
				return "", err
			}
			time.Sleep(500 * time.Millisecond) // until the server has accepted all connections that it accepts
			if err := v.serves(ctx); err != nil {
				return "", err
			}
			hangUp(conns[:200])
			if err := v.serves(ctx); err != nil {
				return "", err
			}
			return fmt.Sprintf("%d connections, probes on all ports and inferences answered", len(conns)), nil
		}
	}
	return []attack{
		{"A2", "400 idle connections to HTTP at 300 descriptors", "the server lives, others are served", exhaust(func(v *server) string { return v.at.HTTP })},
		{"A2", "400 idle connections to gRPC at 300 descriptors", "the server lives, others are served", exhaust(func(v *server) string { return v.at.GRPC })},
		{"A2", "400 idle connections to the metrics at 300 descriptors", "the server lives, others are served", exhaust(func(v *server) string { return v.at.Metrics })},
		{"§2", "slow headers, slow bodies and half-open connections", "others are served; each ends after 60 s without progress", slow},
		{"§2", "3,000 connections with 64 kB of random bytes", "the server lives, memory bounded", garbage},
	}
}

// slow opens connections that stop in the middle of a request.
func slow(ctx context.Context, s *scene) (string, error) {
	if err := s.add("simple", "simple", ""); err != nil {
		return "", err
	}
	v, err := s.serve(ctx, "", []string{"simple"})
	if err != nil {
		return "", err
	}
	var all []net.Conn
	for _, text := range []string{"", "GET /v2/health", "POST " + inferSimple + " HTTP/1.1\r\nHost: localhost\r\nX: ", post(inferSimple, "", strings.Repeat("x", 20_000))[:9000]} {
		conns, err := crowd(ctx, 250, v.at.HTTP, text)
		if err != nil {
			return "", err
		}
		all = append(all, conns...)
	}
	half, err := crowd(ctx, 250, v.at.GRPC, "PRI * HTTP/2.0\r\n")
	if err != nil {
		return "", err
	}
	// settings, and headers of a call without their last frame
	headers, err := crowd(ctx, 250, v.at.GRPC, preface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00"+"\x00\x00\x01\x01\x00\x00\x00\x00\x01\x83")
	if err != nil {
		return "", err
	}
	half = append(half, headers...)
	begin := time.Now()
	for time.Since(begin) < 62*time.Second {
		if err := v.serves(ctx); err != nil {
			return "", err
		}
		time.Sleep(2 * time.Second)
	}
	var open []int
	for i, c := range append(all, half...) {
		_ = c.SetReadDeadline(time.Now().Add(2 * time.Millisecond))
		// the first have sent nothing: they are idle, not slow
		if _, err := io.ReadAll(c); err != nil && errors.Is(err, errTimeout(err)) && i >= 250 {
			open = append(open, i)
		}
	}
	if len(open) > 0 {
		return "", fmt.Errorf("%d slow connections are open after a minute, the first is number %d", len(open), open[0])
	}
	return "1,500 slow connections ended, others served all along", nil
}

// errTimeout returns the error if it is a timeout, and another one otherwise.
func errTimeout(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return err
	}
	return io.EOF
}

// garbage sends bytes of no protocol.
func garbage(ctx context.Context, s *scene) (string, error) {
	if err := s.add("simple", "simple", ""); err != nil {
		return "", err
	}
	v, err := s.serve(ctx, "", []string{"simple"})
	if err != nil {
		return "", err
	}
	for i := range 30 {
		for j, address := range []string{v.at.HTTP, v.at.GRPC} {
			text := string(random(uint64(2*i+j), 64<<10))
			if i%2 == 0 && j == 1 {
				text = preface + text
			}
			conns, err := crowd(ctx, 50, address, text)
			if err != nil {
				return "", err
			}
			hangUp(conns)
		}
	}
	if err := v.serves(ctx); err != nil {
		return "", err
	}
	return v.bounded(512 << 20)
}

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
