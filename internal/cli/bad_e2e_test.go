//go:build linux && !noengine

package cli

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tuner/internal/exit"
)

// mount mounts a file system until the test's end. It skips the test if that is not permitted.
func mount(t *testing.T, source, target, kind string, flags uintptr, options string) {
	t.Helper()
	if err := os.MkdirAll(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(source, target, kind, flags, options); err != nil {
		t.Skipf("needs the permission to mount a file system (%v): run as root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(target, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// expect checks that a message contains all parts.
func expect(t *testing.T, message string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(message, part) {
			t.Errorf("%q is missing in the message:\n%s", part, message)
		}
	}
}

func TestReadOnlyOutput(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	mount(t, "tmpfs", w.output, "tmpfs", syscall.MS_RDONLY, "")
	p := w.run(exit.Usage, "profile", "-f", "profile.yaml")
	expect(t, p.stderr.String(), "profile.yaml: output: cannot use folder", "read-only file system", "choose another folder")
}

// The disk is too small for the journal's first record.
func TestFullDiskAtTheStart(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	mount(t, "tmpfs", w.output, "tmpfs", 0, "size=4k")
	p := w.run(exit.Usage, "profile", "-f", "profile.yaml")
	expect(t, p.stderr.String(), "profile.yaml: output: cannot use folder", "no space left on device", "choose another folder")
	if left, err := filepath.Glob(filepath.Join(w.output, "*.jsonl*")); err != nil || len(left) > 0 {
		t.Errorf("half a journal was left: %v %v", left, err)
	}
}

// The disk has space for the journal, but not for the model (104 kB). With more space the same
// command resumes.
func TestFullDiskInTheMiddle(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	mount(t, "tmpfs", w.output, "tmpfs", 0, "size=64k")
	p := w.run(exit.Usage, "profile", "-f", "profile.yaml")
	expect(t, p.stderr.String(), "no space left on device", "free some space and run the same command again to resume")
	if left, err := filepath.Glob(filepath.Join(w.output, "variants", "*", "*", "*", "*.onnx")); err != nil || len(left) > 0 {
		t.Errorf("half a model was left: %v %v", left, err)
	}
	if len(w.records()) == 0 {
		t.Error("the journal is not readable any more")
	}
	if err := syscall.Mount("tmpfs", w.output, "tmpfs", syscall.MS_REMOUNT, "size=16m"); err != nil {
		t.Fatal(err)
	}
	w.run(exit.OK, "profile", "-f", "profile.yaml")
	if n := len(w.trials()); n != budget {
		t.Errorf("%d trials, want the %d of the budget", n, budget)
	}
}

// Two campaigns cannot write to the same folder. The second one names the first and changes
// nothing.
func TestOutputInUse(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	first := w.start("profile", "-f", "profile.yaml")
	w.awaitTrials(first, 1)
	second := w.run(exit.Usage, "profile", "-f", "profile.yaml")
	expect(t, second.stderr.String(), "profile.yaml: output: cannot use folder",
		"another campaign (process "+strconv.Itoa(first.cmd.Process.Pid)+") is writing there")
	if code := first.exit(); code != exit.OK || len(w.trials()) != budget {
		t.Errorf("the first campaign: exit code %d after %d trials, want 0 after %d", code, len(w.trials()), budget)
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	repository := filepath.Join(w.dir, "empty")
	if err := os.Mkdir(repository, 0o755); err != nil {
		t.Fatal(err)
	}
	p := w.run(exit.Usage, "serve", "--model-repository", repository, "--http-address=127.0.0.1", "--http-port="+port,
		"--grpc-address=127.0.0.1", "--grpc-port=0", "--metrics-address=127.0.0.1", "--metrics-port=0")
	expect(t, p.stderr.String(), "failed to start HTTP service: Unavailable - Socket '127.0.0.1:"+port+"' already in use", "choose another port with --http-port (0: any free one)")
}
