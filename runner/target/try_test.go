package target

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/engine/api"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/model/onnx/build"
	"tuner/runner"
	"tuner/search"
	"tuner/spec"
)

// modelCase returns a profile with a model on disk.
func modelCase(t *testing.T, rest string) (spec.Profile, Model) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := build.MLP().Write(path, 0); err != nil {
		t.Fatal(err)
	}
	p, err := spec.ParseProfile("p.yaml", []byte("model: m.onnx\n"+rest))
	if err != nil {
		t.Fatal(err)
	}
	config, err := modelconfig.Parse("config.pbtxt", []byte(`name: "m" platform: "onnxruntime_onnx" backend: "onnxruntime" default_model_filename: "model.onnx"
version_policy { latest { num_versions: 1 } } max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: 8 } output { name: "y" data_type: TYPE_FP32 dims: 8 }
instance_group { name: "m" kind: KIND_CPU count: 1 }`))
	if err != nil {
		t.Fatal(err)
	}
	return p, Model{Name: "m", Source: modelrepo.Source{Path: path, Digest: "d"}, Config: config}
}

// loader is a server, its engine, and its client. It refuses configurations that contain a certain
// text.
type loader struct {
	api.Client
	refuses  string
	about    api.ServerMetadata
	loads    int
	launches int
	stops    int
}

func (f *loader) Launch(context.Context, runner.Server) (runner.Engine, error) {
	f.launches++
	return f, nil
}
func (f *loader) Address() api.Announcement { return api.Announcement{} }
func (f *loader) PID() int                  { return 0 }
func (f *loader) Done() <-chan struct{}     { return nil }
func (f *loader) Exit() runner.Exit         { return runner.Exit{} }
func (f *loader) LastWords() string         { return "" }
func (f *loader) Stop(context.Context)      { f.stops++ }
func (f *loader) Close() error              { return nil }
func (f *loader) runner() *runner.Runner {
	dial := func(api.Announcement) (api.Client, error) { return f, nil }
	return runner.New(runner.Options{Launcher: f, Dial: dial, Log: slog.New(slog.DiscardHandler), Epoch: time.Now()})
}
func (f *loader) ServerMetadata(context.Context) (api.ServerMetadata, error) { return f.about, nil }
func (f *loader) LoadModel(_ context.Context, _, config string, _ ...api.File) error {
	f.loads++
	if f.refuses != "" && strings.Contains(config, f.refuses) {
		return &api.StatusError{Status: 400, Text: "no such library\nand more"}
	}
	return nil
}

// A provider that the server does not load leaves the space, with the server's message. No part of
// the server keeps running.
func TestServerWithoutAProvider(t *testing.T) {
	t.Parallel()
	p, m := modelCase(t, "runner: {mode: local, server: triton}\nspace: {execution_provider: [cpu, openvino, cuda]}")
	server := &loader{refuses: "openvino", about: api.ServerMetadata{Name: "triton", Version: "2.51.0", Extensions: []string{api.ExtensionStatistics}}}
	facts := search.Facts{Batching: true, Unavailable: map[string]string{"cuda": "no GPU"}, Runtimes: []search.RuntimeFacts{{}}}
	got, about, err := try(t.Context(), p, m, facts, server.runner())
	if err != nil || about.Version != "2.51.0" {
		t.Fatalf("server %+v, error %v", about, err)
	}
	want := "triton 2.51.0 does not load the model: no such library"
	if got.Unavailable["openvino"] != want || got.Unavailable["cuda"] != "no GPU" || len(got.Unavailable) != 2 || got.Runtimes[0].Unavailable["openvino"] != want {
		t.Errorf("unavailable: %v; of the runtime: %v", got.Unavailable, got.Runtimes[0].Unavailable)
	}
	if len(facts.Unavailable) != 1 || facts.Runtimes[0].Unavailable != nil {
		t.Errorf("the facts before have changed: %+v", facts)
	}
	if server.loads != 2 || server.stops != server.launches {
		t.Errorf("%d loads, want the default's and OpenVINO's; %d launches, %d stops", server.loads, server.launches, server.stops)
	}
}

// A server that does not serve the default configuration, or has no statistics, cannot be measured.
func TestServerThatCannotServe(t *testing.T) {
	t.Parallel()
	for want, server := range map[string]*loader{
		`it does not serve model "m" with the default configuration: no such library`: {refuses: "{"},
		"it has no statistics": {},
	} {
		p, m := modelCase(t, "runner: {mode: local, server: triton}")
		if _, _, err := try(t.Context(), p, m, search.Facts{Batching: true}, server.runner()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		if server.stops != server.launches {
			t.Errorf("%d launches, %d stops", server.launches, server.stops)
		}
	}
}
