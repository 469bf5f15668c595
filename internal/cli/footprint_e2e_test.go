//go:build linux && !noengine

package cli

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/footprint"
)

// A configuration's footprint stays the same after a neighbour with batches 16 times as large was
// served in the same process. It is also the same on another launch, although the peaks of its
// trials differ.
func TestFootprintOfTheEngine(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.write("profile.yaml", profileText(filepath.Join(os.Getenv("TUNER_MODELS"), "resnet.onnx"), w.output))
	engines := newEnginesOf(t, w)
	candidate := func(batch int) search.Candidate {
		return search.NewCandidate(search.Setting{Knob: search.KnobIntraOpThreads, Value: "1"},
			search.Setting{Knob: search.KnobInstanceCount, Value: "1"}, search.Setting{Knob: search.KnobMaxBatchSize, Value: search.IntValue(batch)})
	}
	const small, large = 4, 64
	model := footprint.New(search.Space{Facts: search.Facts{Batching: true}})
	measured := func(batch, concurrency int, isFresh bool) (measure.Measurement, float64) {
		t.Helper()
		trial := search.Trial{Candidate: candidate(batch), Load: measure.Load{Concurrency: concurrency, BatchSize: 1}, Windows: 1,
			Window: 100 * time.Millisecond, Phase: search.PhaseSearch, Fresh: isFresh}
		m, err := engines.Measure(t.Context(), trial)
		if err != nil || m.Failure != nil {
			t.Fatalf("%+v, %v", m.Failure, err)
		}
		model.Add(search.Event{Trial: trial, Measurement: m})
		e, ok := model.Of(candidate(small))
		if !ok || e.Basis != footprint.Measured {
			t.Fatalf("batches of %d: %+v, %t", batch, e, ok)
		}
		return m, e.Value
	}
	first, before := measured(small, 2, false)
	measured(large, 4*large, false)
	again, after := measured(small, 2, false)
	fresh, last := measured(small, 2, true)
	if first.Footprint.Batch != small || again.Footprint.Bytes != 0 || fresh.Footprint.Batch != small {
		t.Errorf("footprints %+v, %+v and %+v", first.Footprint, again.Footprint, fresh.Footprint)
	}
	if float64(again.Memory) < 1.1*before {
		t.Errorf("the process held %d bytes after large batches, %.0f before: there is nothing to tell apart", again.Memory, before)
	}
	for _, held := range []float64{after, last, float64(fresh.Footprint.Bytes)} {
		if math.Abs(held/before-1) > 0.05 {
			t.Errorf("the configuration holds %.0f bytes, then %.0f", before, held)
		}
	}
}
