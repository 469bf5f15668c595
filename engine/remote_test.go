package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/enginetest"
	"tuner/engine/fault"
)

// elsewhere is a repository whose models come into a folder when they are fetched.
type elsewhere struct {
	t    *testing.T
	root string

	mu      sync.Mutex
	configs map[string]string // of the models that are there
	fails   map[string]error
	fetched []string
}

func (e *elsewhere) Names(context.Context) {
	for name := range e.configs {
		if err := os.MkdirAll(filepath.Join(e.root, name), 0o755); err != nil {
			e.t.Error(err)
		}
	}
}

func (e *elsewhere) Fetch(_ context.Context, model string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fetched = append(e.fetched, model)
	if err := e.fails[model]; err != nil {
		return err
	}
	if config, ok := e.configs[model]; ok {
		enginetest.WriteModel(e.t, e.root, model, config)
	}
	return nil
}

// take returns the models that were fetched since, in the order of their names.
func (e *elsewhere) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := slices.Sorted(slices.Values(e.fetched))
	e.fetched = nil
	return out
}

// A server in explicit mode fetches a model when it is loaded, and before an ensemble the models that it
// consists of. A model that cannot be fetched stays as it is.
func TestRemote(t *testing.T) {
	t.Parallel()
	e := &elsewhere{t: t, root: t.TempDir(), fails: map[string]error{}, configs: map[string]string{
		"first": "max_batch_size: 4", "p": part, "q": part,
		"both": crossed(8, "p", "q"),
	}}
	s := server(t, &enginetest.Backend{}, engine.Options{Repositories: []string{e.root}, Explicit: true, LoadModels: []string{"first"}, Remote: e, LoadThreads: 2})
	check := func(what string, err error, want ...string) {
		t.Helper()
		if got := e.take(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: fetched %q, %v, want %q", what, got, err, want)
		}
	}
	check("the start", nil, "first")
	index, err := s.Index(false)
	if names := names(index); err != nil || !slices.Equal(names, []string{"both", "first", "p", "q"}) {
		t.Errorf("index: %q, %v", names, err)
	}
	check("an ensemble", s.Load(t.Context(), "both", engine.Override{}), "both", "p", "q")
	if err := s.ModelReady("both", 0); err != nil {
		t.Error(err)
	}
	e.configs["first"] = "max_batch_size: 8"
	check("a model", s.Load(t.Context(), "first", engine.Override{}), "first")
	if got := largestBatch(s, "first"); got != 8 {
		t.Errorf("batch %d, want 8", got)
	}
	check("a model of the request", s.Load(t.Context(), "mine", engine.Override{Config: `{"max_batch_size": 2}`, Files: map[string][]byte{"1/model.onnx": {}}}))

	e.fails["first"] = errors.New("cannot list s3://bucket: access denied")
	e.configs["first"] = "max_batch_size: 2"
	err = s.Load(t.Context(), "first", engine.Override{})
	if fault.CodeOf(err) != fault.Unavailable || err.Error() != "failed to load 'first', cannot list s3://bucket: access denied" || largestBatch(s, "first") != 8 {
		t.Errorf("a model that cannot be fetched: %v, batch %d", err, largestBatch(s, "first"))
	}
	if err := s.Load(t.Context(), "missing", engine.Override{}); err == nil || !strings.Contains(err.Error(), "failed to poll from model repository") {
		t.Errorf("a model that is nowhere: %v", err)
	}
}

// The load of an ensemble says which of its models could not be fetched, whether an older one serves or none.
func TestRemotePartThatCannotBeFetched(t *testing.T) {
	t.Parallel()
	e := &elsewhere{t: t, root: t.TempDir(), fails: map[string]error{"q": errors.New("cannot list s3://bucket: access denied")}, configs: map[string]string{
		"p": part, "q": part, "both": crossed(8, "p", "q"),
	}}
	s := server(t, &enginetest.Backend{}, engine.Options{Repositories: []string{e.root}, Explicit: true, Remote: e, LoadThreads: 2})
	const why = "failed to load 'q', cannot list s3://bucket: access denied"
	err := s.Load(t.Context(), "both", engine.Override{})
	if want := "load failed for model 'both': ensemble 'both' depends on 'q' which has no loaded version. Model 'q' loading failed with error: " + why; err == nil || strings.TrimSpace(err.Error()) != want {
		t.Errorf("no older model: got %v, want %s", err, want)
	}
	broken := e.fails
	e.fails = nil
	if err := s.Load(t.Context(), "both", engine.Override{}); err != nil {
		t.Fatal(err)
	}
	e.fails = broken
	if err := s.Load(t.Context(), "both", engine.Override{}); fault.CodeOf(err) != fault.Unavailable || err.Error() != why {
		t.Errorf("an older model serves: got %v, want %s", err, why)
	}
	if err := s.ModelReady("both", 0); err != nil {
		t.Error(err)
	}
}

func names(index []api.IndexEntry) (out []string) {
	for _, e := range index {
		if !slices.Contains(out, e.Name) {
			out = append(out, e.Name)
		}
	}
	return out
}
