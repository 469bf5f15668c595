package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/enginetest"
	"tuner/engine/fault"
	"tuner/engine/scheduler"
	"tuner/model/modelconfig"
)

// hanging is the max_batch_size of models whose sessions wait for release.
const hanging = 7

// newHanging makes a server with two models: m, which serves, and hangs, whose load does not end
// before release is closed.
func newHanging(t *testing.T) (s *engine.Server, b *enginetest.Backend, release chan struct{}) {
	t.Helper()
	release = make(chan struct{})
	b = &enginetest.Backend{FailLoad: func(c *modelconfig.Config) error {
		if c.GetMaxBatchSize() == hanging {
			<-release
		}
		return nil
	}}
	root := t.TempDir()
	enginetest.WriteModel(t, root, "m", "max_batch_size: 4 instance_group { count: 1 kind: KIND_CPU }")
	enginetest.WriteModel(t, root, "hangs", fmt.Sprintf("max_batch_size: %d instance_group { count: 1 kind: KIND_CPU }", hanging))
	s, err := engine.Open(t.Context(), engine.Options{
		Repositories: []string{root}, Explicit: true, LoadModels: []string{"m"}, StrictReadiness: true, ExitOnError: true,
		Backend: b, Log: slog.New(slog.DiscardHandler), Timer: scheduler.GoTimer,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, b, release
}

// begin starts a load, and returns when it hangs.
func begin(t *testing.T, s *engine.Server, name string, o engine.Override) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.Load(context.WithoutCancel(t.Context()), name, o) }()
	synctest.Wait()
	return done
}

func checkUnavailable(t *testing.T, what string, err error, text string) {
	t.Helper()
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v, want an error that says %q", what, err, text)
	}
}

// An unload gives up a load that hangs. Meanwhile other models can be loaded. The same model
// cannot, until the first load ends.
func TestUnloadEndsHangingLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, b, release := newHanging(t)
		defer s.Close()
		first := begin(t, s, "hangs", engine.Override{})
		second := begin(t, s, "hangs", engine.Override{})
		if err := s.Load(t.Context(), "m", engine.Override{}); err != nil {
			t.Errorf("another model: %v", err)
		}
		if err := s.Unload("hangs"); err != nil || !s.Ready() {
			t.Errorf("unload: %v, ready %v", err, s.Ready())
		}
		checkUnavailable(t, "the load that hangs", <-first, "was unloaded meanwhile")
		checkUnavailable(t, "the load that waits for it", <-second, "try again later")
		checkUnavailable(t, "a later load", s.Load(t.Context(), "hangs", engine.Override{}), "try again later")
		index, err := s.Index(false)
		want := []api.IndexEntry{{Name: "hangs", Version: "1", State: "UNAVAILABLE", Reason: "unloaded"}, {Name: "m", Version: "1", State: "READY"}}
		if d := cmp.Diff(want, index); d != "" || err != nil {
			t.Errorf("index: %v (-want +got):\n%s", err, d)
		}
		close(release)
		synctest.Wait()
		if b.Open() != 1 || s.IsLoading() {
			t.Errorf("%d sessions are open, loading %v; want that of m alone", b.Open(), s.IsLoading())
		}
		if err := s.Load(t.Context(), "hangs", engine.Override{}); err != nil || b.Open() != 2 {
			t.Errorf("load after the first has ended: %v, %d sessions", err, b.Open())
		}
	})
}

// A model keeps serving while its successor hangs, and can still be unloaded.
func TestUnloadWhileReloadHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, b, release := newHanging(t)
		defer s.Close()
		reload := begin(t, s, "m", engine.Override{Config: fmt.Sprintf(`{"max_batch_size":%d}`, hanging)})
		if err := checkEcho(t.Context(), s, 1, 3); err != nil {
			t.Error(err)
		}
		if err := s.Unload("m"); err != nil {
			t.Error(err)
		}
		checkUnavailable(t, "reload", <-reload, "was unloaded meanwhile")
		if err := checkEcho(t.Context(), s, 1, 3); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("request after the unload: %v", err)
		}
		close(release)
		synctest.Wait()
		if b.Open() != 0 || s.ModelReady("m", 0) == nil {
			t.Errorf("%d sessions are open; want none: the model was unloaded", b.Open())
		}
	})
}

// A server ends while a load hangs. The client that requested the load gets an error.
func TestCloseWhileLoadHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, b, release := newHanging(t)
		first := begin(t, s, "hangs", engine.Override{})
		second := begin(t, s, "hangs", engine.Override{})
		s.Drain()
		checkUnavailable(t, "the load that hangs", <-first, "server is stopping")
		checkUnavailable(t, "the load that waits for it", <-second, "Server is stopping")
		checkUnavailable(t, "a load of a server that drains", s.Load(t.Context(), "m", engine.Override{}), "Server is stopping")
		if err := checkEcho(t.Context(), s, 1, 3); err != nil {
			t.Errorf("request while the server drains: %v", err)
		}
		s.Close()
		if !s.IsLoading() || b.Open() != 0 {
			t.Errorf("loading %v, %d sessions; want the load that hangs, and no session", s.IsLoading(), b.Open())
		}
		close(release)
		synctest.Wait()
		if s.IsLoading() || b.Open() != 0 {
			t.Errorf("after the load has ended: loading %v, %d sessions", s.IsLoading(), b.Open())
		}
	})
}

// An interrupted start does not wait for a load that hangs.
func TestInterruptedStartWhileLoadHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := &enginetest.Backend{FailLoad: func(*modelconfig.Config) error { <-release; return nil }}
		root := t.TempDir()
		enginetest.WriteModel(t, root, "m", "")
		s, err := engine.New(engine.Options{Repositories: []string{root}, Backend: b, Log: slog.New(slog.DiscardHandler), Timer: scheduler.GoTimer})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		loaded := make(chan error, 1)
		go func() { loaded <- s.LoadAll(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-loaded; err == nil {
			t.Error("no error")
		}
		s.Close()
		close(release)
	})
}

// A failed upload leaves nothing behind, and does not make the server unready. The earlier state of
// the model stays.
func TestFailedUpload(t *testing.T) {
	t.Parallel()
	b := &enginetest.Backend{FailLoad: func(c *modelconfig.Config) error {
		if c.GetMaxBatchSize() == 3 {
			return fmt.Errorf("broken")
		}
		return nil
	}}
	s, root := open(t, b, "max_batch_size: 4")
	enginetest.WriteModel(t, root, "bad", "max_batch_size: 3")
	if err := s.Load(t.Context(), "bad", engine.Override{}); err == nil || s.Ready() {
		t.Fatalf("a model of the repository that fails: %v, ready %v", err, s.Ready())
	}
	known, err := s.Index(false)
	if err != nil {
		t.Fatal(err)
	}
	entries := s.Entries()
	upload := map[string][]byte{"1/model.onnx": {1}}
	for name, o := range map[string]engine.Override{
		"broken":     {Config: `{"max_batch_size":3}`, Files: upload},
		"refused":    {Config: `{"max_batch_size":-3}`, Files: upload},
		"no version": {Config: `{"backend":"onnxruntime"}`, Files: map[string][]byte{"model.onnx": {1}}},
		"bad":        {Config: `{"max_batch_size":3}`, Files: upload},
		"m":          {Config: `{"max_batch_size":3}`, Files: upload},
	} {
		if err := s.Load(t.Context(), name, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	index, err := s.Index(false)
	if d := cmp.Diff(known, index); d != "" || err != nil {
		t.Errorf("index: %v (-want +got):\n%s", err, d)
	}
	if s.Entries() != entries {
		t.Errorf("%d entries, before %d", s.Entries(), entries)
	}
	if err := s.Unload("bad"); err != nil || !s.Ready() {
		t.Errorf("after the model of the repository is unloaded: %v, ready %v", err, s.Ready())
	}
	if err := checkEcho(t.Context(), s, 1, 3); err != nil {
		t.Error(err)
	}
}

// An ensemble that leaves service with its model, while an upload in its place hangs, stays away when the upload
// fails. It comes back with its model.
func TestFailedUploadOfAnEnsembleThatWasDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := &enginetest.Backend{FailLoad: func(c *modelconfig.Config) error {
			if c.GetMaxBatchSize() != hanging {
				return nil
			}
			<-release
			return errors.New("broken")
		}}
		root := t.TempDir()
		enginetest.WriteModel(t, root, "m", "max_batch_size: 4 instance_group { count: 1 kind: KIND_CPU }")
		enginetest.WriteModel(t, root, "e", crossed(4, "m", "m"))
		s := server(t, b, engine.Options{Repositories: []string{root}, Explicit: true, LoadModels: []string{"*"}, ExitOnError: true, Timer: scheduler.GoTimer})
		defer s.Close()
		upload := begin(t, s, "e", engine.Override{Config: fmt.Sprintf(`{"max_batch_size":%d}`, hanging), Files: map[string][]byte{"1/model.onnx": {1}, "2/model.onnx": {1}}})
		if err := s.Unload("m"); err != nil {
			t.Fatal(err)
		}
		close(release)
		if err := <-upload; err == nil || !strings.Contains(err.Error(), "broken") {
			t.Errorf("the upload: %v", err)
		}
		synctest.Wait()
		if index, err := s.Index(true); err != nil || len(index) > 0 {
			t.Errorf("ready: %v, %v; want no model", index, err)
		}
		if err := s.Load(t.Context(), "m", engine.Override{}); err != nil {
			t.Fatal(err)
		}
		infer(t, s, two(1, 2))
	})
}

// The memory of a server does not grow with models that come and go.
func TestEntriesOfFormerModels(t *testing.T) {
	t.Parallel()
	s, root := open(t, &enginetest.Backend{}, "max_batch_size: 4 instance_group { count: 1 kind: KIND_CPU }")
	for i := range 500 {
		name := fmt.Sprint("model", i)
		o := engine.Override{Config: `{"instance_group":[{"count":1,"kind":"KIND_CPU"}]}`, Files: map[string][]byte{"1/model.onnx": {1}}}
		if i%2 == 0 {
			enginetest.WriteModel(t, root, name, "instance_group { count: 1 kind: KIND_CPU }")
			o = engine.Override{}
		}
		if err := s.Load(t.Context(), name, o); err != nil {
			t.Fatal(err)
		}
		if err := s.Unload(name); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if s.Entries() > 100 {
		t.Errorf("%d entries of models that are gone", s.Entries())
	}
}
