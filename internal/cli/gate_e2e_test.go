//go:build linux && !noengine

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"tuner/internal/exit"
)

// startGate begins a gate of the small MLP against itself. It waits until both engines run; one of
// them is stopped, or about to be.
func startGate(t *testing.T) (workplace, *program, []int) {
	t.Helper()
	w := newWorkplace(t)
	model := filepath.Join(os.Getenv("TUNER_MODELS"), "mlp.onnx")
	w.write("gate.yaml", fmt.Sprintf("baseline: %q\ncandidate: %[1]q\noutput: out\nload: {concurrency: 2}\n", model))
	p := w.start("gate", "-f", "gate.yaml")
	var engines []int
	eventually(t, "both engines", func() bool {
		engines = enginesOf(p.cmd.Process.Pid)
		return len(engines) == 2
	})
	return w, p, engines
}

// Ctrl-C ends a gate with the result so far, and leaves no engine behind, not even the stopped one.
func TestInterruptedGateLeavesNoEngine(t *testing.T) {
	t.Parallel()
	w, p, engines := startGate(t)
	p.signal(syscall.SIGINT)
	if code := p.exit(); code != exit.Interrupted {
		t.Errorf("exit code %d, want %d; stderr:\n%s", code, exit.Interrupted, p.stderr.String())
	}
	for _, engine := range engines {
		awaitGone(t, engine)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "out", "gate.json")); err != nil {
		t.Error(err)
	}
}

// A killed gate leaves no engine behind either.
func TestKilledGateLeavesNoEngine(t *testing.T) {
	t.Parallel()
	_, p, engines := startGate(t)
	p.signal(syscall.SIGKILL)
	for _, engine := range engines {
		awaitGone(t, engine)
	}
	p.exit()
}
