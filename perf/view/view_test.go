package view

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/measure"
	"tuner/perf"
	"tuner/perf/paflags"
)

// The live line is gone after the run, also if the run ended before anything was measured, and nothing
// is printed over it.
func TestEndClearsTheLiveLine(t *testing.T) {
	t.Parallel()
	screen, err := os.Create(filepath.Join(t.TempDir(), "screen"))
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	v := New(io.Discard, screen, perf.Settings{}, paflags.Reports{})
	v.End()
	v.terminal = screen // a file is none
	v.Live(perf.Progress{Load: measure.Load{Concurrency: 4}})
	v.End()
	got, err := os.ReadFile(screen.Name())
	if err != nil || !strings.HasPrefix(string(got), clearLine) || !strings.Contains(string(got), "concurrency 4") || !strings.HasSuffix(string(got), clearLine) {
		t.Errorf("the screen has %q, %v", got, err)
	}
}
