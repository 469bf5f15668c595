//go:build linux && !noengine

package cli

import (
	"path/filepath"
	"testing"
	"time"

	"tuner/measure"
	"tuner/model/onnx/build"
	"tuner/search"
)

// A model with a scalar input is served with the configuration that tuner completes. The model's
// file declares an output wider than ONNX Runtime infers.
func TestScalarModelIsServed(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	path := filepath.Join(w.dir, "scalar.onnx")
	if err := build.Scalar().Write(path, 0); err != nil {
		t.Fatal(err)
	}
	w.write("profile.yaml", profileText(path, w.output))
	m, err := newEnginesOf(t, w).Measure(t.Context(), search.Trial{Load: measure.Load{Concurrency: 1, BatchSize: 1}, Windows: 1,
		Window: 100 * time.Millisecond, Phase: search.PhaseDefault})
	if err != nil || m.Failure != nil || len(m.Windows) != 1 || m.Windows[0].Requests == 0 || m.Windows[0].Errors > 0 || m.Footprint.Batch != 1 {
		t.Errorf("%d windows, %+v, %+v, %v", len(m.Windows), m.Footprint, m.Failure, err)
	}
}
