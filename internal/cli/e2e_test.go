//go:build linux && !noengine

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"tuner/internal/exit"
	"tuner/measure"
	"tuner/profile/journal"
	"tuner/search"
)

// These tests run whole campaigns, each in its own process with real engines. They simulate actions
// of users and systems, and crashes.

// kill -9 in the middle loses at most the current trial, and leaves no engine behind.
func TestKilledCampaignGoesOn(t *testing.T) {
	t.Parallel()
	t.Run("one model", func(t *testing.T) {
		t.Parallel()
		killAndGoOn(t, newWorkplace(t))
	})
	t.Run("two models", func(t *testing.T) {
		t.Parallel()
		w := newWorkplace(t)
		w.write("profile.yaml", severalText(os.Getenv("TUNER_MODELS"), w.output))
		killAndGoOn(t, w)
	})
}

func killAndGoOn(t *testing.T, w workplace) {
	t.Helper()
	first := w.start("profile", "-f", "profile.yaml")
	engine := w.awaitTrials(first, 2)
	first.signal(syscall.SIGKILL)
	awaitGone(t, engine)
	first.exit()

	kept := w.trials()
	before, err := os.ReadFile(filepath.Join(w.output, journal.FileName))
	if err != nil {
		t.Fatal(err)
	}
	before = before[:bytes.LastIndexByte(before, '\n')+1] // an incomplete last line is not a record

	w.run(exit.OK, "profile", "-f", "profile.yaml")
	after, err := os.ReadFile(filepath.Join(w.output, journal.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(after, before) {
		t.Error("the journal from before the kill was changed")
	}
	all := w.trials()
	if len(all) != budget { // the killed trial does not count
		t.Errorf("%d trials in all, %d of them before the kill; want %d", len(all), len(kept), budget)
	}
	for _, e := range searched(all[len(kept):]) {
		if slices.Contains(searched(kept), e) {
			t.Errorf("%s was measured again: it was in the journal already", e)
		}
	}
	if last := all[len(all)-1].Elapsed; last <= kept[len(kept)-1].Elapsed {
		t.Errorf("campaign time went back: %v after %v", last, kept[len(kept)-1].Elapsed)
	}
}

// searched lists candidate, load and number of windows of the search's trials. It omits finals,
// which repeat some of them on purpose.
func searched(events []search.Event) []string {
	var list []string
	for _, e := range events {
		if e.Trial.Phase == search.PhaseSearch {
			list = append(list, e.Trial.Candidate.Key()+" at "+e.Trial.Load.String())
		}
	}
	return list
}

// One SIGINT, SIGTERM or SIGHUP ends a campaign cleanly. Its measurements can be analyzed, and the
// same command resumes it.
func TestInterruptedCampaignIsUsable(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorkplace(t)
			p := w.start("profile", "-f", "profile.yaml")
			engine := w.awaitTrials(p, 2)
			p.signal(s)
			if code := p.exit(); code != exit.Interrupted {
				t.Errorf("exit code %d, want %d; stderr:\n%s", code, exit.Interrupted, p.stderr.String())
			}
			awaitGone(t, engine)
			w.checkInterrupted()
			if !bytes.Contains(p.stderr.Bytes(), []byte("the same command resumes, and 'tuner analyze' uses what was measured")) {
				t.Errorf("stderr does not say how to go on:\n%s", p.stderr.String())
			}
			w.analyze()
		})
	}
}

// The second signal ends a campaign at once, even while it waits for an engine that does not end.
// That engine is stopped.
func TestInterruptedTwiceEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	p := w.start("profile", "-f", "profile.yaml")
	w.awaitTrials(p, 2)
	engine := 0
	eventually(t, "a stopped engine", func() bool { // if the campaign has just ended this one, the next one is stopped
		engine, _ = p.awaitLoad()
		return syscall.Kill(engine, syscall.SIGSTOP) == nil
	})
	p.signal(syscall.SIGINT)
	p.signal(syscall.SIGTERM) // another signal, since two equal pending signals are merged
	if code := p.exit(); code != exit.Interrupted {
		t.Errorf("exit code %d, want %d; stderr:\n%s", code, exit.Interrupted, p.stderr.String())
	}
	awaitGone(t, engine)
	if records := w.records(); records[len(records)-1].Kind == journal.KindEnd {
		t.Error("the campaign ended cleanly, so it waited for the engine")
	}
	w.analyze()
}

// An engine that dies in the middle of a trial makes that trial fail. The campaign continues with a
// new engine.
func TestKilledEngineIsAFailedTrial(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	p := w.start("profile", "-f", "profile.yaml")
	for len(failed(w.trials())) == 0 { // repeat if the trial ended just before the kill
		seen := len(w.trials())
		engine, running := p.awaitLoad()
		if !running {
			break
		}
		_ = syscall.Kill(engine, syscall.SIGKILL) // fails if the campaign has just stopped it
		eventually(t, "the next trial", func() bool { return len(w.trials()) > seen })
	}
	if code := p.exit(); code != exit.OK {
		t.Fatalf("exit code %d; stderr:\n%s", code, p.stderr.String())
	}
	failures := failed(w.trials())
	if len(failures) == 0 {
		t.Fatalf("no trial failed; stderr:\n%s", p.stderr.String())
	}
	for _, f := range failures {
		if f.Stage != measure.StageCrash && f.Stage != measure.StageMemory {
			t.Errorf("failure %q (%s), want a crash or want of memory", f.Stage, f.Reason)
		}
	}
	if n := len(w.trials()); n != budget || len(failures) == n {
		t.Errorf("%d trials, %d failed; want %d, and those after the kill to succeed", n, len(failures), budget)
	}
	w.analyze()
}

func failed(events []search.Event) []measure.Failure {
	var list []measure.Failure
	for _, e := range events {
		if e.Measurement.Failure != nil {
			list = append(list, *e.Measurement.Failure)
		}
	}
	return list
}
