package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tuner/engine/api"
	"tuner/internal/hostinfo"
	"tuner/internal/programtest"
	"tuner/runner"
)

// goVariable names a file. The fake server waits for it before it listens. "": it does not wait.
const goVariable = "TUNER_TEST_GO"

// playServer plays a program that takes tritonserver's options. It is ready as soon as it listens,
// and ends a while after SIGTERM.
func playServer() int {
	option := func(name string) string {
		for _, arg := range os.Args[1:] {
			if value, found := strings.CutPrefix(arg, "--"+name+"="); found {
				return value
			}
		}
		return ""
	}
	for file := os.Getenv(goVariable); file != ""; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			break
		}
	}
	l, err := net.Listen("tcp", net.JoinHostPort(option("http-address"), option("http-port")))
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: creating server:", err)
		return 1
	}
	fmt.Println("serving", option("model-repository"), option("model-control-mode"), option("log-info"))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		time.Sleep(50 * time.Millisecond) // accepted requests are answered first
		fmt.Println("ended")
		os.Exit(0)
	}()
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // serves until the process ends
		if r.URL.Path != "/v2/health/ready" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	return 1
}

// fakeServer launches this test's binary in a role.
func fakeServer(role string) Local {
	return Local{Program: os.Args[0], Args: []string{"--log-info=1"}, Environment: map[string]string{roleVariable: role}, Dial: runner.HTTP}
}

func TestLocalServer(t *testing.T) {
	t.Parallel()
	l := fakeServer("server")
	l.Log = filepath.Join(t.TempDir(), "logs", "server.log")
	engine, err := l.Launch(t.Context(), runner.Server{Repository: "some/repository"})
	if err != nil {
		t.Fatal(err)
	}
	at := engine.Address()
	if client, err := runner.HTTP(at); err != nil || !isServing(t, client) || at.GRPC == "" || at.Metrics == "" {
		t.Errorf("at %+v: not ready, %v", at, err)
	}
	if words := engine.LastWords(); words != "serving some/repository explicit 1" {
		t.Errorf("its output is %q", words)
	}
	engine.Stop(t.Context())
	if exit := engine.Exit(); exit.Text != "exit status 0" {
		t.Errorf("exit %+v: want the server to end by itself when it is asked to", exit)
	}
	if isTaken(at) {
		t.Error("its ports are still taken")
	}
	if log, err := os.ReadFile(l.Log); err != nil || string(log) != "serving some/repository explicit 1\nended\n" {
		t.Errorf("its log is %q, %v", log, err)
	}
}

// On a full disk the server keeps running, and its last lines stay known. Only its log breaks off.
func TestLocalServerWhoseLogIsFull(t *testing.T) {
	t.Parallel()
	l := fakeServer("server")
	l.Log = "/dev/full"
	var warnings []error
	l.Warn = func(err error) { warnings = append(warnings, err) }
	engine, err := l.Launch(t.Context(), runner.Server{Repository: "some/repository"})
	if err != nil {
		t.Fatal(err)
	}
	engine.Stop(t.Context())
	if words, exit := engine.LastWords(), engine.Exit(); words != "serving some/repository explicit 1\nended" || exit.Text != "exit status 0" {
		t.Errorf("exit %+v, its last words are %q", exit, words)
	}
	if len(warnings) != 1 || !errors.Is(warnings[0], syscall.ENOSPC) {
		t.Errorf("warnings %v, want one of the full disk", warnings)
	}
}

func isServing(t *testing.T, client api.Client) bool {
	t.Helper()
	defer func() { _ = client.Close() }()
	isReady, err := client.ServerReady(t.Context())
	return isReady && err == nil
}

// A script that does not exec the server leaves a process behind when it ends. That process is
// ended too, and its CPU time and memory count.
func TestLocalServerBehindAScript(t *testing.T) {
	t.Parallel()
	script := programtest.Write(t, filepath.Join(t.TempDir(), "tritonserver"), "#!/bin/sh\n\""+os.Args[0]+"\" \"$@\"\necho it has ended\n")
	l := fakeServer("server")
	l.Program = script
	engine, err := l.Launch(t.Context(), runner.Server{Repository: "repository"})
	if err != nil {
		t.Fatal(err)
	}
	pid := engine.PID()
	if tree := hostinfo.Tree(pid); len(tree) != 2 {
		t.Errorf("the processes are %v, want the script and the server", tree)
	}
	engine.Stop(t.Context())
	if left := hostinfo.Group(pid); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	if isTaken(engine.Address()) {
		t.Error("its ports are still taken")
	}
}

func TestLocalServersThatDoNotStart(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]string{
		"failing": "it ended before it was ready (exit status 7); its last output:\nline 11\n",
		"mute":    "it was not ready within 300ms",
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			l := fakeServer(role)
			if role == "mute" {
				l.Start = 300 * time.Millisecond
			}
			_, err := l.Launch(t.Context(), runner.Server{Repository: "repository"})
			var start *runner.StartError
			if !errors.As(err, &start) || !strings.HasPrefix(start.Reason, want) {
				t.Errorf("ended with %v, want %q", err, want)
			}
		})
	}
	l := fakeServer("server")
	l.Program = filepath.Join(t.TempDir(), "tritonserver")
	if _, err := l.Launch(t.Context(), runner.Server{Repository: "repository"}); !errors.Is(err, os.ErrNotExist) || errors.As(err, new(*runner.StartError)) {
		t.Errorf("no such program: %v, want the campaign's own error", err)
	}
}

func TestCancelledStartOfALocalServer(t *testing.T) {
	t.Parallel()
	stopped := errors.New("stopped by the user")
	ctx, cancel := context.WithCancelCause(t.Context())
	l := fakeServer("mute")
	l.Dial = func(at api.Announcement) (api.Client, error) {
		cancel(stopped)
		return runner.HTTP(at)
	}
	if _, err := l.Launch(ctx, runner.Server{Repository: "repository"}); !errors.Is(err, stopped) {
		t.Errorf("ended with %v, want the context's cause", err)
	}
}

// The port was free when it was chosen, but another program has it when the server wants it. The
// server gets other ports.
func TestPortThatIsTakenMeanwhile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "go")
	l := fakeServer("server")
	l.Environment[goVariable] = file
	var tried []string
	var once sync.Once
	l.Dial = func(at api.Announcement) (api.Client, error) {
		if !slices.Contains(tried, at.HTTP) {
			tried = append(tried, at.HTTP)
		}
		once.Do(func() {
			taken, err := net.Listen("tcp", at.HTTP)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = taken.Close() })
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Error(err)
			}
		})
		return runner.HTTP(at)
	}
	engine, err := l.Launch(t.Context(), runner.Server{Repository: "repository"})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Stop(t.Context())
	if len(tried) != 2 || engine.Address().HTTP != tried[1] {
		t.Errorf("ready at %s, tried were %v", engine.Address().HTTP, tried)
	}
}
