package children_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tuner/internal/children"
	"tuner/internal/children/childrentest"
)

// A killed process's child ends, and so do the child's own children.
func TestKilledWithParent(t *testing.T) {
	childrentest.CheckKilled(t, func(script string) {
		_ = children.Run(children.Command(context.Background(), "/bin/sh", "-c", script))
	})
}

// The result is the command's. Remaining processes are killed.
func TestRun(t *testing.T) {
	t.Parallel()
	var exit *exec.ExitError
	if err := children.Run(children.Command(t.Context(), "/bin/sh", "-c", "exit 3")); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("error %v, want exit code 3", err)
	}
	if err := children.Run(children.Command(t.Context(), filepath.Join(t.TempDir(), "none"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no program: %v", err)
	}
	text, err := children.Output(children.Command(t.Context(), "/bin/sh", "-c", "echo out; echo err >&2; sleep 1000 >/dev/null 2>&1 & echo $$"))
	if err != nil || !strings.HasPrefix(string(text), "out\nerr\n") {
		t.Errorf("%q, %v", text, err)
	}
}

// The end of the context ends the group.
func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	pipe, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	cmd := children.Command(ctx, "/bin/sh", "-c", "sleep 1000 & echo started; wait")
	cmd.Stdout = output
	ended, err := children.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	_ = output.Close()
	text := make([]byte, 100)
	if n, err := pipe.Read(text); err != nil || string(text[:n]) != "started\n" {
		t.Fatalf("%q, %v", text[:n], err)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("a killed command ended well")
	}
	if n, err := pipe.Read(text); n > 0 || err == nil { // end of file: the shell's child no longer holds it open
		t.Errorf("%d bytes, %v", n, err)
	}
}
