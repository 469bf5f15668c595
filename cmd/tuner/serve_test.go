//go:build !noengine

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"tuner/engine/api"
	"tuner/onnx/build"
)

// child is a server that was started as profile starts it.
type child struct {
	cmd    *exec.Cmd
	parent *os.File // the server ends when this is closed
	at     api.Announcement
}

func startChild(t *testing.T) *child {
	t.Helper()
	if os.Getenv("TUNER_ORT_LIBRARY") == "" {
		t.Skip("needs ONNX Runtime: run 'make test', which sets TUNER_ORT_LIBRARY")
	}
	model := filepath.Join(t.TempDir(), "repo", "simple", "1", "model.onnx")
	if err := os.MkdirAll(filepath.Dir(model), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := build.Simple().Write(model, 0); err != nil {
		t.Fatal(err)
	}
	announceRead, announceWrite := pipe(t)
	parentRead, parentWrite := pipe(t)
	program, err := exec.LookPath("tuner") // this test binary, see TestMain
	if err != nil {
		t.Fatal(err)
	}
	c := &child{parent: parentWrite, cmd: exec.CommandContext(t.Context(), program, "serve",
		"--model-repository", filepath.Dir(filepath.Dir(filepath.Dir(model))), "--model-control-mode=explicit", "--load-model=*",
		"--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--http-port=0", "--grpc-port=0", "--metrics-port=0",
		"--announce-fd=3", "--parent-fd=4")}
	c.cmd.ExtraFiles = []*os.File{announceWrite, parentRead} // descriptors 3 and 4
	c.cmd.Stderr = t.Output()
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(announceWrite.Close(), parentRead.Close()); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(announceRead).ReadBytes('\n')
	if err != nil {
		t.Fatalf("no announcement: %v", err)
	}
	if err := json.Unmarshal(line, &c.at); err != nil {
		t.Fatalf("announcement %q: %v", line, err)
	}
	return c
}

func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = read.Close(), write.Close() }) // most are closed by then
	return read, write
}

// The announcement comes when the server can be asked; SIGTERM ends it with code 0.
func TestServeAnnouncesAndEnds(t *testing.T) {
	t.Parallel()
	c := startChild(t)
	if c.at.PID != c.cmd.Process.Pid || c.at.ORTVersion == "" || c.at.ORTLibrary != os.Getenv("TUNER_ORT_LIBRARY") {
		t.Errorf("announcement %+v of process %d", c.at, c.cmd.Process.Pid)
	}
	grpc, err := api.NewGRPC(c.at.GRPC)
	if err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]api.Client{"http": api.NewHTTP(c.at.HTTP), "grpc": grpc} {
		if ready, err := client.ModelReady(t.Context(), "simple"); err != nil || !ready {
			t.Errorf("%s: ready %v, %v", name, ready, err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := api.Metrics(t.Context(), c.at.Metrics); err != nil {
		t.Error(err)
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// However the parent ends, its end of the pipe is closed then, and the server goes with it.
func TestServeDiesWithItsParent(t *testing.T) {
	t.Parallel()
	c := startChild(t)
	if err := c.parent.Close(); err != nil {
		t.Fatal(err)
	}
	var ended *exec.ExitError
	if err := c.cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != exitFailure {
		t.Errorf("got %v, want exit code %d", err, exitFailure)
	}
}
