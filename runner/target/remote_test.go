package target

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tuner/engine/api"
	"tuner/engine/enginetest"
	"tuner/measure"
	"tuner/runner"
)

// protocol is a protocol for talking to engines.
type protocol struct {
	dial runner.Dial
	wire runner.Wire
}

var protocols = map[string]protocol{"gRPC": {runner.GRPC, runner.Over(runner.OverGRPC)}, "HTTP": {runner.HTTP, runner.Over(runner.OverHTTP)}}

// remoteAt returns a server with the model "fake" as a remote one, and a runner for it.
func remoteAt(t *testing.T, p protocol, model string, sends bool) (*enginetest.Engine, *Remote, *runner.Runner) {
	t.Helper()
	e := enginetest.Start(t, enginetest.Options{Model: "fake", Config: enginetest.FakeConfig(4), Backend: &enginetest.Backend{ServiceTime: func(int, int) time.Duration { return time.Millisecond }}})
	r := &Remote{At: api.Announcement{HTTP: e.Addresses.HTTP, GRPC: e.Addresses.GRPC}, Connect: p.dial, Model: model, Sends: func(string) bool { return sends }}
	return e, r, runner.New(runner.Options{Launcher: r, Dial: r.Dial, Wire: p.wire, Log: slog.New(slog.DiscardHandler), Epoch: time.Now()})
}

// remoteJob returns a short job on the model.
func remoteJob(model, repository, config string) runner.Job {
	requests := enginetest.FakeRequests()
	for i := range requests {
		requests[i].Model = model
	}
	return runner.Job{Pool: config, Repository: repository, Model: model, Config: strings.Replace(config, `"name":"fake"`, `"name":"`+model+`"`, 1), Instances: 1, Requests: requests,
		Load: measure.Load{Concurrency: 2, BatchSize: 1}, Windows: 1, Window: 100 * time.Millisecond}
}

// states returns the states of the models in a server's index.
func states(t *testing.T, e *enginetest.Engine) map[string]string {
	t.Helper()
	index, err := e.Server.Index(false)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for _, entry := range index {
		list[entry.Name] = entry.State
	}
	return list
}

// A model that the server had loaded is measured with other configurations and unloaded in between.
// At the end it is loaded as before.
func TestRemoteModelIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, remote, r := remoteAt(t, p, "fake", false)
			state, err := remote.Inspect(t.Context())
			if err != nil || !state.Known || state.Config.GetMaxBatchSize() != 4 || state.Server.Name != "triton" {
				t.Fatalf("state %+v, %v", state, err)
			}
			fresh := remoteJob("fake", "", enginetest.FakeConfigJSON(2))
			fresh.Fresh = true
			for i, job := range []runner.Job{remoteJob("fake", "", enginetest.FakeConfigJSON(2)), remoteJob("fake", "", enginetest.FakeConfigJSON(8)), fresh} {
				m, err := r.Measure(t.Context(), job)
				if err != nil || m.Failure != nil || m.Launch != i+1 || m.Times.Launch == 0 || m.Memory != 0 {
					t.Fatalf("job %d: %+v, %v", i, m, err)
				}
			}
			if about, err := r.Server(t.Context()); err != nil || about.Name != "triton" {
				t.Errorf("%+v, %v", about, err)
			}
			r.Close(t.Context())
			if s := states(t, e)["fake"]; s != api.StateUnavailable {
				t.Errorf("after the campaign the model is %s, want it unloaded", s)
			}
			if _, err := r.Server(t.Context()); err == nil {
				t.Error("a server that was left tells of itself")
			}
			if err := remote.Restore(t.Context(), state); err != nil {
				t.Fatal(err)
			}
			if now, err := remote.Inspect(t.Context()); err != nil || now.Config.GetMaxBatchSize() != 4 {
				t.Errorf("in the end the server has %+v, %v", now, err)
			}
		})
	}
}

// A configuration that a load brought in place of the repository's is restored.
func TestRemoteModelWithAnOverrideIsGivenBack(t *testing.T) {
	t.Parallel()
	_, remote, r := remoteAt(t, protocols["gRPC"], "fake", false)
	client, err := runner.GRPC(remote.At)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if err := client.LoadModel(t.Context(), "fake", enginetest.FakeConfigJSON(3)); err != nil {
		t.Fatal(err)
	}
	state, err := remote.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if failure, err := r.Try(t.Context(), remoteJob("fake", "", enginetest.FakeConfigJSON(8))); failure != nil || err != nil {
		t.Fatalf("%+v, %v", failure, err)
	}
	if failure, err := r.Try(t.Context(), remoteJob("fake", "", `{"name":"fake","max_batch_size":-1}`)); err != nil || failure == nil || failure.Stage != measure.StageLoad {
		t.Errorf("a configuration that no server takes: %+v, %v", failure, err)
	}
	r.Close(t.Context())
	if err := remote.Restore(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	if c, err := client.ModelConfig(t.Context(), "fake"); err != nil || c.GetMaxBatchSize() != 3 {
		t.Errorf("in the end the configuration is %v, %v", c, err)
	}
}

// Files that the server does not have travel with each load, or are copied to its repository. Other
// models do not change.
func TestFilesOfARemoteModel(t *testing.T) {
	t.Parallel()
	variant := t.TempDir()
	enginetest.WriteModel(t, variant, "other", strings.Replace(enginetest.FakeConfig(4), `"fake"`, `"other"`, 1))
	for name, isPlaced := range map[string]bool{"sent": false, "placed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, remote, r := remoteAt(t, protocols["gRPC"], "other", true)
			if isPlaced {
				remote.Place = e.Repository
			}
			state, err := remote.Inspect(t.Context())
			if err != nil || state.Known || state.Config != nil {
				t.Fatalf("state %+v, %v", state, err)
			}
			m, err := r.Measure(t.Context(), remoteJob("other", variant, enginetest.FakeConfigJSON(2)))
			if err != nil || m.Failure != nil {
				t.Fatalf("%+v, %v", m.Failure, err)
			}
			placed := filepath.Join(e.Repository, "other", "1", "model.onnx")
			if _, err := os.Stat(placed); (err == nil) != isPlaced {
				t.Errorf("the file is in the server's repository: %t, want %t", err == nil, isPlaced)
			}
			if s := states(t, e); s["other"] != api.StateReady || s["fake"] != api.StateReady {
				t.Errorf("meanwhile the models are %v", s)
			}
			r.Close(t.Context())
			if err := remote.Restore(t.Context(), state); err != nil {
				t.Fatal(err)
			}
			if s := states(t, e); s["other"] == api.StateReady || s["fake"] != api.StateReady {
				t.Errorf("in the end the models are %v", s)
			}
			if _, err := os.Stat(filepath.Dir(filepath.Dir(placed))); err == nil {
				t.Error("in the end the files are still there")
			}
		})
	}
}

// obstinate is a client of a server that keeps its models. Its load fails for the client alone.
type obstinate struct{ api.Client }

func (o obstinate) LoadModel(ctx context.Context, model, config string, files ...api.File) error {
	return cmp.Or(o.Client.LoadModel(ctx, model, config, files...), context.DeadlineExceeded)
}

func (obstinate) UnloadModel(context.Context, string) error { return context.DeadlineExceeded }

// A model that was not loaded before, and that the last visit left loaded, is unloaded in the end.
// If that is not possible either, it is an error.
func TestRemoteModelIsUnloadedInTheEnd(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		e, remote, r := remoteAt(t, protocols["gRPC"], "fake", false)
		if err := e.Server.Unload("fake"); err != nil {
			t.Fatal(err)
		}
		state, err := remote.Inspect(t.Context())
		if err != nil || state.Config != nil {
			t.Fatalf("%+v, %v", state, err)
		}
		remote.Connect = func(at api.Announcement) (api.Client, error) {
			c, err := runner.GRPC(at)
			return obstinate{c}, err
		}
		if _, err := r.Try(t.Context(), remoteJob("fake", "", enginetest.FakeConfigJSON(2))); err != nil {
			t.Fatal(err)
		}
		r.Close(t.Context())
		if s := states(t, e)["fake"]; s != api.StateReady {
			t.Fatalf("after the visit the model is %s", s)
		}
		if !fails {
			remote.Connect = runner.GRPC
		}
		if err := remote.Restore(t.Context(), state); (err != nil) != fails {
			t.Errorf("a server that does not unload: %t; %v", fails, err)
		}
		if s := states(t, e)["fake"]; (s == api.StateReady) != fails {
			t.Errorf("in the end the model is %s", s)
		}
	}
}

func TestModelFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	enginetest.WriteModel(t, dir, "m", enginetest.FakeConfig(4))
	if err := os.WriteFile(filepath.Join(dir, "m", "labels.txt"), []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := modelFiles(filepath.Join(dir, "m"))
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	if err != nil || !slices.Equal(paths, []string{"1/model.onnx", "labels.txt"}) || string(files[1].Data) != "a\n" {
		t.Errorf("%q, %v", paths, err)
	}
	if _, err := modelFiles(filepath.Join(dir, "nosuch")); err == nil {
		t.Error("files of a folder that is not there")
	}
}

// A server that has gone is not a result of a trial: the campaign cannot continue.
func TestRemoteServerThatIsGone(t *testing.T) {
	t.Parallel()
	for name, p := range protocols {
		remote := &Remote{At: api.Announcement{HTTP: "127.0.0.1:1", GRPC: "127.0.0.1:1"}, Connect: p.dial, Model: "m", Sends: func(string) bool { return false }}
		r := runner.New(runner.Options{Launcher: remote, Dial: remote.Dial, Log: slog.New(slog.DiscardHandler)})
		if m, err := r.Measure(t.Context(), remoteJob("m", "", enginetest.FakeConfigJSON(2))); err == nil || !strings.Contains(err.Error(), "cannot use the server at 127.0.0.1:1") {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		if state, err := remote.Inspect(t.Context()); err == nil {
			t.Errorf("%s: %+v", name, state)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	client, err := runner.GRPC(api.Announcement{GRPC: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	v := &visit{remote: &Remote{Model: "m"}, client: client, done: make(chan struct{})}
	v.Stop(ended)
	v.Stop(ended) // again
	<-v.Done()
}
