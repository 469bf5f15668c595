//go:build linux && !noengine

package cli

import (
	"context"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tuner/measure"
	"tuner/ort/ortlib"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/runner"
	"tuner/runner/target"
	"tuner/search"
)

// A service trial runs on the real engine. Each window executes only the requested batches, and the
// server reports their times. The process then runs a trial at a load, with a smaller batch.
func TestServiceTrialOfTheEngine(t *testing.T) {
	t.Parallel()
	engines := newEngines(t)
	candidate := search.NewCandidate(search.Setting{Knob: search.KnobIntraOpThreads, Value: "1"},
		search.Setting{Knob: search.KnobInstanceCount, Value: "2"}, search.Setting{Knob: search.KnobMaxBatchSize, Value: "256"})
	for busy := 1; busy <= 2; busy++ {
		m, err := engines.Measure(t.Context(), search.Trial{Candidate: candidate, Load: measure.Load{Concurrency: busy, BatchSize: 1}, Windows: 3,
			Window: 100 * time.Millisecond, Phase: search.PhaseService, Sizes: []int{1, 32, 256}})
		if err != nil || m.Failure != nil || len(m.Windows) != 3 || m.Launch != 1 {
			t.Fatalf("%d windows, launch %d, %+v, %v", len(m.Windows), m.Launch, m.Failure, err)
		}
		var took []time.Duration // compute time of a request, by size
		for i, size := range []int{1, 32, 256} {
			s := m.Windows[i].Server
			if s.Requests < 2 || s.Inferences != size*s.Requests || s.Executions > s.Requests || m.Windows[i].Inferences != size*m.Windows[i].Requests {
				t.Fatalf("%d busy, batch %d: %d requests; the server says %+v", busy, size, m.Windows[i].Requests, s)
			}
			for _, b := range s.Batches { // two waiting requests may be executed together
				if b.Size != size && (busy == 1 || b.Size != 2*size) {
					t.Errorf("%d busy: %d batches of %d were executed when %d was asked for", busy, b.Executions, b.Size, size)
				}
			}
			took = append(took, s.ComputeInfer/time.Duration(s.Requests))
		}
		if slices.Min(took) <= 0 {
			t.Errorf("%d busy: batches of 1, 32 and 256 take %v", busy, took)
		}
	}
	serving := search.Trial{Candidate: candidate.With(search.KnobMaxBatchSize, "4"), Load: measure.Load{Concurrency: 8, BatchSize: 1}, Windows: 1,
		Window: 100 * time.Millisecond, Phase: search.PhaseSearch}
	if m, err := engines.Measure(t.Context(), serving); err != nil || m.Failure != nil || m.Launch != 1 || m.Windows[0].Server.MeanBatch() > 4 {
		t.Errorf("then at a load: %+v, %v", m, err)
	}
}

// newEngines measures configurations of the small MLP on engines of this binary, which end with the
// test.
func newEngines(t *testing.T) *profile.Engines {
	t.Helper()
	return newEnginesOf(t, newWorkplace(t))
}

// newEnginesOf measures configurations of the workplace's profile.
func newEnginesOf(t *testing.T, w workplace) *profile.Engines {
	t.Helper()
	p := readProfileAt(t, filepath.Join(w.dir, "profile.yaml"))
	subject, err := profile.OpenSubject(p, profile.Place{})
	if err != nil {
		t.Fatal(err)
	}
	requests, err := profile.Requests(p, subject)
	if err != nil {
		t.Fatal(err)
	}
	build, err := ortlib.Resolve("")
	if err != nil {
		t.Fatal(err)
	}
	tuner, err := exec.LookPath("tuner")
	if err != nil {
		t.Fatal(err)
	}
	r := runner.New(runner.Options{Launcher: target.Bundled{Binary: tuner}, Dial: runner.GRPC, Wire: runner.Over(runner.OverGRPC), Log: slog.New(slog.DiscardHandler), Epoch: time.Now()})
	t.Cleanup(func() { r.Close(context.WithoutCancel(t.Context())) })
	return profile.NewEngines(profile.Setup{Profile: p, Subject: subject, Runtime: journal.RuntimeInfo{Library: build.Library}}, r, nil, requests)
}
