package profile_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/measure"
	"tuner/model/onnx/build"
	"tuner/profile"
	"tuner/runner"
	"tuner/search"
	"tuner/spec"
)

// openedModel opens a model with external data. It also returns the model's path.
func openedModel(t *testing.T) (spec.Profile, profile.Subject, string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "m.onnx")
	if err := build.MLP().Write(path, 1); err != nil {
		t.Fatal(err)
	}
	p, err := spec.ParseProfile(filepath.Join(dir, "p.yaml"), []byte("model: m.onnx\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := profile.OpenSubject(p, profile.Place{})
	if err != nil {
		t.Fatal(err)
	}
	return p, s, path
}

// change appends to a file in place.
func change(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("x")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func checkChanged(t *testing.T, what, path string, err error) {
	t.Helper()
	if input := new(profile.InputError); !errors.As(err, &input) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "put the old file back") {
		t.Errorf("%s: error %v, want an InputError that names the file and the remedy", what, err)
	}
}

func TestCheckUnchanged(t *testing.T) {
	t.Parallel()
	for what, alter := range map[string]func(path string) error{
		"gone":      os.Remove,
		"truncated": func(path string) error { return os.Truncate(path, 10) },
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", []byte("another model"), 0o600), os.Rename(path+".new", path))
		},
	} {
		for _, file := range []string{"", ".data"} {
			_, s, path := openedModel(t)
			if err := s.Files[0].CheckUnchanged(); err != nil {
				t.Fatal(err)
			}
			if err := alter(path + file); err != nil {
				t.Fatal(err)
			}
			checkChanged(t, what, path+file, s.Files[0].CheckUnchanged())
		}
	}
	_, s, path := openedModel(t)
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := s.Files[0].CheckUnchanged(); err != nil {
		t.Errorf("touched: %v", err)
	}
	change(t, path+".data")
	checkChanged(t, "a weight", path+".data", s.Files[0].CheckUnchanged())
}

// changing is a server whose model changes while it starts.
type changing struct{ change func() }

func (c changing) Launch(context.Context, runner.Server) (runner.Engine, error) {
	c.change()
	return nil, &runner.StartError{Reason: "it does not load"}
}

// A model that changes during a campaign ends it, before or after a trial. No candidate counts as
// failed because of it.
func TestChangedModelEndsTheCampaign(t *testing.T) {
	t.Parallel()
	trial := search.Trial{Load: measure.Load{Concurrency: 1, BatchSize: 1}, Windows: 1, Window: time.Second}
	for what, run := range map[string]func(e *profile.Engines) error{
		"a trial": func(e *profile.Engines) error { _, err := e.Measure(t.Context(), trial); return err },
		"a block": func(e *profile.Engines) error {
			_, err := e.MeasureBlock(t.Context(), []search.Trial{trial})
			return err
		},
	} {
		p, s, path := openedModel(t)
		p.Output = t.TempDir()
		launches := 0
		server := changing{func() { launches++; change(t, path) }}
		e := profile.NewEngines(profile.Setup{Profile: p, Subject: s, Facts: search.Facts{Batching: true}},
			runner.New(runner.Options{Launcher: server, Log: slog.New(slog.DiscardHandler), Epoch: time.Now()}), nil, runner.Requests{{}})
		checkChanged(t, "during "+what, path, run(e))
		if launches == 0 {
			t.Errorf("%s: nothing was launched", what)
		}
		launched := launches
		checkChanged(t, "before "+what, path, run(e))
		if launches > launched {
			t.Errorf("%s: an engine was launched on a changed model", what)
		}
	}
}
