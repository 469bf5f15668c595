package profile_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"tuner/engine/api"
	"tuner/journal"
	"tuner/profile"
	"tuner/runner"
	"tuner/search"
)

// fakeServer is a server, the engine that it runs in, and the client of it. It loads models but for configurations with a certain text.
type fakeServer struct {
	api.Client
	refuses  string
	about    api.ServerMetadata
	loads    int
	launches int
	stops    int
}

func (f *fakeServer) Launch(context.Context, string, string) (runner.Engine, error) {
	f.launches++
	return f, nil
}
func (f *fakeServer) Address() api.Announcement { return api.Announcement{} }
func (f *fakeServer) PID() int                  { return 0 }
func (f *fakeServer) Done() <-chan struct{}     { return nil }
func (f *fakeServer) Exit() runner.Exit         { return runner.Exit{} }
func (f *fakeServer) LastWords() string         { return "" }
func (f *fakeServer) Stop(context.Context)      { f.stops++ }
func (f *fakeServer) Close() error              { return nil }
func (f *fakeServer) runner() *runner.Runner {
	dial := func(api.Announcement) (api.Client, error) { return f, nil }
	return runner.New(runner.Options{Launcher: f, Dial: dial, Log: slog.New(slog.DiscardHandler), Epoch: time.Now()})
}
func (f *fakeServer) ServerMetadata(context.Context) (api.ServerMetadata, error) { return f.about, nil }
func (f *fakeServer) LoadModel(_ context.Context, _, config string, _ ...api.File) error {
	f.loads++
	if f.refuses != "" && strings.Contains(config, f.refuses) {
		return &api.StatusError{Status: 400, Text: "no such library\nand more"}
	}
	return nil
}

// What a server does not load leaves the space with its words, and nothing of the server is left running.
func TestServerWithoutAProvider(t *testing.T) {
	t.Parallel()
	p, s, _ := variantCase(t, "runner: {mode: local, server: triton}\nspace: {execution_provider: [cpu, openvino, cuda]}")
	server := &fakeServer{refuses: "openvino", about: api.ServerMetadata{Name: "triton", Version: "2.51.0", Extensions: []string{api.ExtensionStatistics}}}
	facts := search.Facts{Batching: true, Unavailable: map[string]string{"cuda": "no GPU"}, Runtimes: []search.RuntimeFacts{{}}}
	got, about, err := profile.TryServer(t.Context(), p, s, facts, server.runner())
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

// A server without which there is no campaign is the user's to mend.
func TestServerThatCannotServe(t *testing.T) {
	t.Parallel()
	for want, server := range map[string]*fakeServer{
		`it does not serve model "m" with the default configuration: no such library`: {refuses: "{"},
		"it gives no statistics": {},
	} {
		p, s, _ := variantCase(t, "runner: {mode: local, server: triton}")
		_, _, err := profile.TryServer(t.Context(), p, s, search.Facts{Batching: true}, server.runner())
		if input := new(profile.InputError); !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want an InputError with %q", err, want)
		}
		if server.stops != server.launches {
			t.Errorf("%d launches, %d stops", server.launches, server.stops)
		}
	}
}

// A journal goes on on the same servers only.
func TestResumeComparesServers(t *testing.T) {
	t.Parallel()
	p, subject, _ := variantCase(t, "output: out")
	triton := journal.ServerInfo{Mode: "local", Where: "/bin/tritonserver", Name: "triton", Version: "2.51.0"}
	newer := triton
	newer.Version = "2.52.0"
	setup := profile.Setup{Profile: p, Subject: subject, Facts: search.Facts{Batching: true}, Server: &triton, Finals: &triton}
	open := func(s profile.Setup) error {
		log, err := profile.OpenLog(s, time.Unix(0, 0))
		if err != nil {
			return err
		}
		return log.Close()
	}
	for range 2 {
		if err := open(setup); err != nil {
			t.Fatal(err)
		}
	}
	changed, bundled, same := setup, setup, setup
	changed.Server, bundled.Server, same.Finals = &newer, nil, nil
	var all []string
	for _, s := range []profile.Setup{changed, bundled, same} {
		err := open(s)
		if err == nil {
			t.Fatal("a journal of another server goes on")
		}
		all = append(all, err.Error())
	}
	for i, want := range []string{"server: triton 2.51.0 (/bin/tritonserver) then, triton 2.52.0 (/bin/tritonserver) now", "server: ", "server of the finals: "} {
		if !strings.Contains(all[i], want) {
			t.Errorf("error %q, want %q", all[i], want)
		}
	}
}
