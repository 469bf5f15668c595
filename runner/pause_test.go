package runner

import (
	"testing"
	"testing/synctest"
)

func (e *engine) Pause()  { e.paused = true }
func (e *engine) Resume() { e.paused = false }

// A paused engine runs again for the next job, even the same one. Without an engine Pause does
// nothing.
func TestPauseEndsWithTheNextJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t)
		r.Pause()
		for range 2 {
			if m, err := r.Measure(t.Context(), job("p", "c")); err != nil || m.Failure != nil {
				t.Fatalf("%+v, %v", m.Failure, err)
			}
			if l.last().paused {
				t.Error("the engine was measured while it was paused")
			}
			if r.Pause(); !l.last().paused {
				t.Error("the engine was not paused")
			}
		}
		if len(l.engines) != 1 {
			t.Errorf("%d engines were launched for two jobs of one pool", len(l.engines))
		}
	})
}
