package engine_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine"
	"tuner/engine/enginetest"
	"tuner/engine/fault"
	"tuner/engine/poll"
	"tuner/engine/ratelimit"
	"tuner/model/modelconfig"
)

// server opens an engine on repositories that the test has written. The test may change o.
func server(t *testing.T, b *enginetest.Backend, o engine.Options) *engine.Server {
	t.Helper()
	o.Backend, o.Log = b, slog.New(slog.DiscardHandler)
	s, err := engine.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// largestBatch returns the max_batch_size that a model has, 0 if it is not ready.
func largestBatch(s *engine.Server, model string) int32 {
	c, err := s.ModelConfig(model, 0)
	if err != nil {
		return 0
	}
	return c.GetMaxBatchSize()
}

// A configuration of the asked name has precedence, and a model without one keeps its own.
func TestConfigName(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "both", "max_batch_size: 2")
	write(t, filepath.Join(root, "both", "configs", "h100.pbtxt"), "max_batch_size: 3")
	enginetest.WriteModel(t, root, "one", "max_batch_size: 5")
	for name, want := range map[string][2]int32{"": {2, 5}, "h100": {3, 5}, "other": {2, 5}} {
		s := server(t, &enginetest.Backend{}, engine.Options{Repositories: []string{root}, ConfigName: name})
		if got := [2]int32{largestBatch(s, "both"), largestBatch(s, "one")}; got != want {
			t.Errorf("name %q: max_batch_size %v, want %v", name, got, want)
		}
	}
}

// A load that fails twice succeeds with two retries, and not with one.
func TestLoadRetries(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "m", "")
	for retries, want := range map[int]bool{0: false, 1: false, 2: true, 3: true} {
		var calls atomic.Int32
		b := &enginetest.Backend{FailLoad: func(*modelconfig.Config) error {
			if calls.Add(1) <= 2 {
				return errors.New("the disk is busy")
			}
			return nil
		}}
		s := server(t, b, engine.Options{Repositories: []string{root}, LoadRetries: retries})
		if got := largestBatch(s, "m") > 0; got != want {
			t.Errorf("%d retries: ready is %v, want %v", retries, got, want)
		}
	}
}

// The poller and the engine together, on real files.
func TestPollMode(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "old", "max_batch_size: 2")
	s := server(t, &enginetest.Backend{}, engine.Options{Repositories: []string{root}})
	p := poll.New(t.Context(), s, 1, slog.New(slog.DiscardHandler))
	check := func(when string, want map[string]int32) {
		t.Helper()
		p.Poll(t.Context())
		got := map[string]int32{}
		for _, model := range []string{"old", "new"} {
			if n := largestBatch(s, model); n != 0 {
				got[model] = n
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: max_batch_size of the ready models (-want +got):\n%s", when, diff)
		}
	}
	check("at first", map[string]int32{"old": 2})
	enginetest.WriteModel(t, root, "new", "max_batch_size: 3")
	write(t, filepath.Join(root, "old", "config.pbtxt"), "max_batch_size: 11")
	check("just changed", map[string]int32{"old": 2})
	check("stable", map[string]int32{"old": 11, "new": 3})
	if err := os.RemoveAll(filepath.Join(root, "new")); err != nil {
		t.Fatal(err)
	}
	check("just removed", map[string]int32{"old": 11, "new": 3})
	check("gone", map[string]int32{"old": 11})
	for _, err := range []error{s.Load(t.Context(), "old", engine.Override{}), s.Unload("old")} {
		if fault.CodeOf(err) != fault.Unavailable || err.Error() != "explicit model load / unload is not allowed if polling is enabled" {
			t.Errorf("model control: got %v", err)
		}
	}
}

// A folder whose name is not UTF-8 is no model, and the log says so once. No list can have its name.
func TestNamesThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "good", "")
	const bad = "caf\xe9"
	if err := os.Mkdir(filepath.Join(root, bad), 0o755); err != nil {
		t.Skip("the file system has no such names:", err)
	}
	enginetest.WriteModel(t, root, bad, "")
	var log bytes.Buffer
	s, err := engine.Open(t.Context(), engine.Options{Repositories: []string{root}, Explicit: true, LoadModels: []string{"*"}, ExitOnError: true,
		Backend: &enginetest.Backend{}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, onlyReady := range []bool{false, true} {
		index, err := s.Index(onlyReady)
		if names := names(index); err != nil || !cmp.Equal(names, []string{"good"}) {
			t.Errorf("index: %q, %v", names, err)
		}
	}
	if err := s.Load(t.Context(), bad, engine.Override{}); err == nil {
		t.Error("it was loaded by a request")
	}
	if n := len(s.Metrics()); n != 1 {
		t.Errorf("metrics of %d models, want 1", n)
	}
	if n := strings.Count(log.String(), "its name is not UTF-8"); n != 1 || !strings.Contains(log.String(), `folder="caf\xe9"`) {
		t.Errorf("%d warnings, want 1:\n%s", n, log.String())
	}
}

// With namespaces, both models of a name are loaded, and a request that names them is refused until
// one of them is gone. Without, neither is.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	a, b := t.TempDir(), t.TempDir()
	enginetest.WriteModel(t, a, "m", "max_batch_size: 2")
	enginetest.WriteModel(t, b, "m", "max_batch_size: 3")
	enginetest.WriteModel(t, b, "only", "max_batch_size: 4")
	options := engine.Options{Repositories: []string{a, b}, Namespacing: true, Explicit: true, LoadModels: []string{"*"}, StrictReadiness: true}
	s := server(t, &enginetest.Backend{}, options)
	if largestBatch(s, "only") != 4 || !s.Ready() {
		t.Error("a name that is unique is not served, or the server is not ready")
	}
	const ambiguous = "There are 2 identifiers of model 'm' in global map, model namespace must be provided to resolve ambiguity."
	if err := s.ModelReady("m", 0); err == nil || err.Error() != ambiguous || fault.CodeOf(err) != fault.InvalidArgument {
		t.Errorf("a name in two repositories: got %v", err)
	}
	if err := s.ModelReady("none", 0); err == nil || fault.CodeOf(err) != fault.InvalidArgument {
		t.Errorf("an unknown name: got %v", err)
	}
	var namespaces []string
	for _, one := range s.Metrics() {
		namespaces = append(namespaces, one.Namespace)
	}
	if len(namespaces) != 3 {
		t.Errorf("metrics of %v, want three models", namespaces)
	}
	index, err := s.Index(true)
	names := map[string]int{}
	for _, e := range index {
		names[e.Name]++
	}
	if diff := cmp.Diff(map[string]int{"m": 2, "only": 1}, names); diff != "" || err != nil {
		t.Errorf("index (%v): (-want +got):\n%s", err, diff)
	}
	if _, err := s.Statistics("m", 0); err == nil || err.Error() != "requested model 'm' is not available" {
		t.Errorf("statistics of a name in two repositories: got %v", err)
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(a, "m")), s.Unload("m")); err != nil {
		t.Fatal(err)
	}
	if err := s.ModelReady("m", 0); err == nil || err.Error() != "Identifier of model 'm' is not found in global map" || fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an unloaded name: got %v", err)
	}
	if err := s.Load(t.Context(), "m", engine.Override{}); err != nil {
		t.Fatal(err)
	}
	if largestBatch(s, "m") != 3 {
		t.Error("the remaining model of the name is not served")
	}
	options.Namespacing, options.Explicit, options.LoadModels = false, false, nil
	enginetest.WriteModel(t, a, "m", "")
	if plain := server(t, &enginetest.Backend{}, options); largestBatch(plain, "m") != 0 || largestBatch(plain, "only") != 4 {
		t.Error("without namespaces a name in two repositories is served")
	}
}

// Two models that need the same resource never execute at the same time.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const config = "instance_group { count: 2 rate_limiter { resources { name: \"R\" global: true count: 1 } } }"
	enginetest.WriteModel(t, root, "m", config)
	enginetest.WriteModel(t, root, "n", config)
	var most atomic.Int32
	b := &enginetest.Backend{ServiceTime: func(_, busy int) time.Duration {
		for old := most.Load(); int32(busy) > old && !most.CompareAndSwap(old, int32(busy)); old = most.Load() {
		}
		return time.Millisecond
	}}
	s := server(t, b, engine.Options{Repositories: []string{root}, Limiter: ratelimit.New(nil)})
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			for range 5 {
				r := request(1)
				r.Model = []string{"m", "n"}[i%2]
				response, err := s.Infer(t.Context(), r)
				if err != nil {
					t.Error(err)
					return
				}
				response.Release()
			}
		})
	}
	clients.Wait()
	if most.Load() != 1 {
		t.Errorf("%d executions at the same time, want 1", most.Load())
	}
}

// A capacity below an instance's need fails the load, in Triton's words.
func TestRateLimitThatIsTooLow(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "m", "instance_group { rate_limiter { resources { name: \"R\" count: 4 } } }")
	b := &enginetest.Backend{}
	s := server(t, b, engine.Options{Repositories: []string{root}, Explicit: true, Limiter: ratelimit.New([]ratelimit.Capacity{{Name: "R", Count: 3, Device: ratelimit.AllDevices}})})
	const want = "load failed for model 'm': version 1 is at UNAVAILABLE state: Invalid argument: " +
		"Resource count for \"R\" is limited to 3 which will prevent scheduling of one or more model instances, the minimum required count is 4;\n"
	if err := s.Load(t.Context(), "m", engine.Override{}); err == nil || err.Error() != want {
		t.Errorf("got %q", err)
	}
	if b.Open() != 0 {
		t.Errorf("%d sessions stay open", b.Open())
	}
}
