package runner

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"tuner/engine/api"
)

// TestLoaded checks that the models are loaded by their own configuration, and that a job without a
// Config uses them. If one is refused, no engine stays behind.
func TestLoaded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, _ := newLab(t)
		loaded := Loaded{Launcher: l, Dial: l.dial, Models: []string{"m", "n"}}
		r := New(Options{Launcher: loaded, Dial: l.dial, Wire: l.wire, Log: slog.New(slog.DiscardHandler), Epoch: time.Now()})
		m, err := r.Measure(t.Context(), job("export", ""))
		if err != nil || m.Failure != nil || len(m.Windows) != 2 {
			t.Errorf("measured %d windows, %v, %v", len(m.Windows), m.Failure, err)
		}
		if len(l.loads) != 2 || l.loads[0] != "" || l.loads[1] != "" {
			t.Errorf("loads with the configurations %q, want the two models by their own", l.loads)
		}
		r.Close(t.Context())

		l.loadError = &api.StatusError{Status: 3, Text: "no such operator"}
		var refused *api.StatusError
		if _, err := loaded.Launch(t.Context(), Server{Repository: "deploy"}); !errors.As(err, &refused) {
			t.Errorf("error %v, want the engine's", err)
		}
		if l.last().stops == 0 {
			t.Error("the engine was not stopped")
		}
	})
}
