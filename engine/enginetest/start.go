package enginetest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tuner/engine"
	"tuner/engine/frontends"
	"tuner/engine/rest"
)

// drainTime bounds the time for a test's engine to end.
const drainTime = 10 * time.Second

// Options of a test's engine.
type Options struct {
	Backend *Backend // nil: a new one
	Model   string   // its name; "": "fake"
	Config  string   // config.pbtxt; "": none
	// clients may register regions
	SharedMemory bool
}

// Engine is a running engine in explicit mode, with one model loaded.
type Engine struct {
	Server     *engine.Server
	Addresses  frontends.Addresses
	Repository string // the folder that holds the model's folder
	Model      string
	Backend    *Backend
}

// Start serves a fake model on loopback ports until the test ends.
func Start(t testing.TB, o Options) *Engine {
	t.Helper()
	if o.Backend == nil {
		o.Backend = &Backend{}
	}
	if o.Model == "" {
		o.Model = "fake"
	}
	e := &Engine{Repository: t.TempDir(), Model: o.Model, Backend: o.Backend}
	WriteModel(t, e.Repository, o.Model, o.Config)
	e.Server, e.Addresses = Serve(t, engine.Options{
		Repositories: []string{e.Repository}, Explicit: true, LoadModels: []string{o.Model}, Backend: o.Backend, SharedMemory: o.SharedMemory,
	})
	return e
}

// Serve runs a server on loopback ports until the test ends. It discards the log. Readiness is
// strict.
func Serve(t testing.TB, o engine.Options) (*engine.Server, frontends.Addresses) {
	t.Helper()
	o.ID, o.Version, o.StrictReadiness, o.ExitOnError = "triton", "test", true, true
	o.Log = slog.New(slog.DiscardHandler)
	server, err := engine.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	local := frontends.Listen{Enabled: true, Address: "127.0.0.1"}
	f, err := frontends.Open(server, frontends.Options{HTTP: local, GRPC: local, Metrics: local, SharedMemory: o.SharedMemory, REST: rest.Options{Log: o.Log}, Log: o.Log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- f.Serve(ctx, drainTime) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("engine: %v", err)
		}
		server.Close()
	})
	return server, f.Addresses()
}

// WriteModel puts a model with an empty model file into a repository.
func WriteModel(t testing.TB, repository, name, config string) {
	t.Helper()
	dir := filepath.Join(repository, name)
	if err := os.MkdirAll(filepath.Join(dir, "1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "1", "model.onnx"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if config != "" {
		if err := os.WriteFile(filepath.Join(dir, "config.pbtxt"), []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
