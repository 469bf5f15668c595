package ort

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/ort/sessionoption"
)

func TestSessionOptions(t *testing.T) {
	t.Parallel()
	optimized := filepath.Join(t.TempDir(), "optimized.onnx")
	s := testSession(t, "add_sub", SessionOptions{
		Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "2", sessionoption.InterOpThreads: "2", sessionoption.ExecutionMode: sessionoption.Parallel, sessionoption.MemoryArena: sessionoption.Off, sessionoption.MemoryPattern: sessionoption.Off, sessionoption.GraphOptimization: "extended"}, LogSeverity: LogError, OptimizedModelPath: optimized,
		Entries:    map[string]string{"session.intra_op.allow_spinning": "0"},
		RunEntries: map[string]string{"disable_synchronize_execution_providers": "1"},
		Providers:  []Provider{{Name: "cpu"}},
	})
	x := testTensor(t, Float32, []int64{1, 4}, floats(1, 2, 3, 4))
	run(t, s, []*Tensor{x, x}, "sum")
	if _, err := os.Stat(optimized); err != nil {
		t.Errorf("the optimised model was not written: %v", err)
	}
}

// Every provider that creates a session computes the same. A provider that cannot (for example
// without a GPU) returns an error and does no other harm.
func TestProviders(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	x := testTensor(t, Float32, []int64{2, 4}, floats(1, 2, 3, 4, 5, 6, 7, 8))
	for _, name := range r.Providers() {
		s, err := r.NewSession(model("add_sub"), SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}, Providers: []Provider{{Name: name}}})
		if err != nil {
			t.Logf("%s: %v", name, err)
			if name == "cpu" {
				t.Error("the cpu provider must work")
			}
			continue
		}
		output := run(t, s, []*Tensor{x, x}, "sum")[0]
		if err := s.Close(); err != nil { // an output outlives its session
			t.Error(err)
		}
		if diff := cmp.Diff(floats(2, 4, 6, 8, 10, 12, 14, 16), output.Bytes()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
