package rewrite_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/orttest"
	"tuner/model/onnx/rewrite/rewritetest"
)

func TestMain(m *testing.M) { os.Exit(orttest.Main(m)) }

// Cleaning changes no result.
func TestCleanComputesTheSame(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	for name, m := range rewritetest.Samples() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := orttest.Random(t, m, 2, 1)
			if diff := cmp.Diff(orttest.InferFloats(t, orttest.LoadOneThread(t, m), in), orttest.InferFloats(t, orttest.LoadOneThread(t, clean(t, m)), in)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
