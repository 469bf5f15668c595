package runner

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tuner/engine/api"
	"tuner/engine/enginetest"
	"tuner/measure"
)

// onLoopback launches the engine with a fake backend in this process.
type onLoopback struct {
	t       *testing.T
	backend *enginetest.Backend
	n       int
}

func (l *onLoopback) Launch(context.Context, Server) (Engine, error) {
	l.n++
	return loopback{enginetest.Start(l.t, enginetest.Options{Backend: l.backend, Model: "fake", Config: enginetest.FakeConfig(4)})}, nil
}

// loopback is an engine that ends with the test.
type loopback struct{ e *enginetest.Engine }

func (l loopback) Address() api.Announcement {
	return api.Announcement{HTTP: l.e.Addresses.HTTP, GRPC: l.e.Addresses.GRPC}
}
func (l loopback) PID() int              { return 0 }
func (l loopback) Done() <-chan struct{} { return nil }
func (l loopback) Exit() Exit            { return Exit{} }
func (l loopback) LastWords() string     { return "" }
func (l loopback) Stop(context.Context)  {}

// protocol is a protocol for talking to engines.
type protocol struct {
	dial Dial
	wire Wire
}

var protocols = map[string]protocol{"gRPC": {GRPC, Over(OverGRPC)}, "HTTP": {HTTP, Over(OverHTTP)}}

// The whole way over real connections: load with a configuration, warm up, measure, reconfigure,
// measure again.
func TestRunnerOverTheWire(t *testing.T) {
	t.Parallel()
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &onLoopback{t: t, backend: &enginetest.Backend{ServiceTime: func(rows, _ int) time.Duration { return 2*ms + time.Duration(rows)*ms/4 }}}
			r := New(Options{Launcher: l, Dial: p.dial, Wire: p.wire, Log: slog.New(slog.DiscardHandler), Epoch: time.Now()})
			defer r.Close(t.Context())
			requests := enginetest.FakeRequests()
			for _, maxBatch := range []int{4, 2} {
				m, err := r.Measure(t.Context(), Job{
					Pool: "a", Model: "fake", Config: enginetest.FakeConfigJSON(maxBatch), Instances: 1, MaxBatch: maxBatch, Requests: requests,
					Load: measure.Load{Concurrency: 8, BatchSize: 1}, Windows: 2, Window: 500 * ms,
				})
				if err != nil || m.Failure != nil {
					t.Fatalf("%+v, %v", m.Failure, err)
				}
				checkWindows(t, m, maxBatch)
			}
			if l.n != 1 {
				t.Errorf("%d launches, want 1: the second job only reconfigures", l.n)
			}
			m, err := r.Measure(t.Context(), Job{Pool: "a", Model: "fake", Config: "{}}", Requests: requests, Load: measure.Load{Concurrency: 1}, Windows: 1, Window: 200 * ms})
			if err != nil || m.Failure == nil || m.Failure.Stage != measure.StageLoad {
				t.Errorf("a broken configuration yields %+v, %v", m.Failure, err)
			}
		})
	}
}

// checkWindows checks what must hold whatever the machine's speed.
func checkWindows(t *testing.T, m measure.Measurement, maxBatch int) {
	t.Helper()
	for _, w := range m.Windows {
		s := w.Server
		if w.Requests == 0 || w.Errors != 0 || s.Requests == 0 || s.Executions == 0 || s.ComputeInfer == 0 {
			t.Errorf("window with %d requests, %d errors %q, server %+v", w.Requests, w.Errors, w.FirstError, s)
		}
		if mean := s.MeanBatch(); mean < 1 || mean > float64(maxBatch) {
			t.Errorf("mean batch %g, want 1 to %d", mean, maxBatch)
		}
		executions := 0
		for _, b := range s.Batches {
			executions += b.Executions
			if b.Size > maxBatch {
				t.Errorf("%d batches of %d, the largest allowed is %d", b.Executions, b.Size, maxBatch)
			}
		}
		if executions != s.Executions {
			t.Errorf("the batches add up to %d executions of %d", executions, s.Executions)
		}
	}
	if e, ok := m.Estimate(measure.LatencyP50); !ok || e.Value < 0.002 {
		t.Errorf("p50 %+v, %t, want 2 ms of service time at least", e, ok)
	}
}

func TestEngineThatDoesNotServeTheProtocol(t *testing.T) {
	t.Parallel()
	for name, p := range protocols {
		if _, err := p.dial(api.Announcement{}); err == nil {
			t.Errorf("a client over %s was made without an address", name)
		}
	}
}

// A metrics page that cannot be read is no failure of the engine's.
func TestMetricsPageThatFails(t *testing.T) {
	t.Parallel()
	page := httptest.NewServer(http.NotFoundHandler())
	defer page.Close()
	l := &onLoopback{t: t, backend: &enginetest.Backend{ServiceTime: func(int, int) time.Duration { return ms }}}
	var log bytes.Buffer
	r := New(Options{Launcher: l, Dial: GRPC, Wire: Over(OverGRPC), Log: slog.New(slog.NewTextHandler(&log, nil)), Epoch: time.Now(), Metrics: page.URL})
	defer r.Close(t.Context())
	m, err := r.Measure(t.Context(), Job{Pool: "a", Model: "fake", Config: enginetest.FakeConfigJSON(2), Instances: 1, MaxBatch: 2, Requests: enginetest.FakeRequests(),
		Load: measure.Load{Concurrency: 2, BatchSize: 1}, Windows: 1, Window: 100 * ms})
	if err != nil || m.Failure != nil || len(m.Windows) != 1 || m.Windows[0].Requests == 0 {
		t.Errorf("%+v, %v", m, err)
	}
	if !strings.Contains(log.String(), "404 Not Found") {
		t.Errorf("the log says %q", log.String())
	}
}
