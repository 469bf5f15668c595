//go:build linux && !noengine

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tuner/internal/exit"
)

// Ctrl-C ends a sweep at once with the result so far, in usable files. It leaves none of its
// engines behind.
func TestInterruptedSweepIsUsable(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	p := w.start("ortsweep", "-m", filepath.Join(os.Getenv("TUNER_MODELS"), "mlp.onnx"), "--knob", "intra_op_threads=1,2", "-o", "sweep")
	var engines []int
	eventually(t, "the engine that all candidates share", func() bool {
		engines = enginesOf(p.cmd.Process.Pid)
		return len(engines) > 0
	})
	p.signal(syscall.SIGINT)
	if code := p.exit(); code != exit.Interrupted {
		t.Fatalf("exit code %d, want %d; stderr:\n%s", code, exit.Interrupted, p.stderr.String())
	}
	for _, engine := range engines {
		awaitGone(t, engine)
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "sweep", "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Interrupted bool `json:"interrupted"`
		Winner      struct {
			Confirmed bool `json:"confirmed"`
		} `json:"winner"`
	}
	if err := json.Unmarshal(text, &result); err != nil || !result.Interrupted || result.Winner.Confirmed {
		t.Errorf("%+v, %v", result, err)
	}
	if !strings.Contains(p.stderr.String(), "interrupted after") {
		t.Errorf("stderr does not say so:\n%s", p.stderr.String())
	}
}
