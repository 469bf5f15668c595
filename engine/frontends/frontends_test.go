package frontends_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/enginetest"
	"tuner/engine/frontends"
)

func server(t *testing.T, b *enginetest.Backend) *engine.Server {
	t.Helper()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "fake", "")
	s, err := engine.Open(t.Context(), engine.Options{Repositories: []string{root}, StrictReadiness: true, Backend: b, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// A server that is asked to end before it has begun ends.
func TestServeAfterTheEnd(t *testing.T) {
	t.Parallel()
	local := frontends.Listen{Enabled: true, Address: "127.0.0.1"}
	f, err := frontends.Open(server(t, &enginetest.Backend{}), frontends.Options{HTTP: local, GRPC: local, Metrics: local, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Serve(ctx, time.Minute); err != nil {
		t.Error(err)
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	_, err = frontends.Open(server(t, &enginetest.Backend{}), frontends.Options{
		HTTP: frontends.Listen{Enabled: true, Address: "127.0.0.1", Port: 0, Flag: "http-port"},
		GRPC: frontends.Listen{Enabled: true, Address: "127.0.0.1", Port: port, Flag: "grpc-port"},
		Log:  slog.New(slog.DiscardHandler),
	})
	want := "failed to start GRPC service: Unavailable - Socket '127.0.0.1:" + strconv.Itoa(port) + "' already in use: end the process that uses it, or choose another port with --grpc-port (0: any free one)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// Requests accepted before the end are answered. Front ends that are not enabled are not served.
func TestDrain(t *testing.T) {
	t.Parallel()
	running, release := make(chan struct{}), make(chan struct{})
	s := server(t, &enginetest.Backend{ServiceTime: func(int, int) time.Duration {
		close(running)
		<-release
		return 0
	}})
	var log strings.Builder
	f, err := frontends.Open(s, frontends.Options{
		HTTP: frontends.Listen{Enabled: true, Address: "127.0.0.1"}, Metrics: frontends.Listen{Enabled: true, Address: "127.0.0.1"},
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Started()
	at := f.Addresses()
	if at.HTTP == "" || at.GRPC != "" || at.Metrics == "" {
		t.Errorf("addresses %+v, want HTTP and metrics", at)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- f.Serve(ctx, time.Minute) }()
	c := api.NewHTTP(at.HTTP)
	defer c.Close()
	data := make([]byte, 64)
	r, err := c.Encode(api.InferRequest{Model: "fake", Inputs: []api.Tensor{
		{Name: "INPUT0", Datatype: "INT32", Shape: []int64{1, 16}, Data: data}, {Name: "INPUT1", Datatype: "INT32", Shape: []int64{1, 16}, Data: data},
	}})
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := c.Infer(t.Context(), r)
		answered <- err
	}()
	<-running
	if !s.Ready() {
		t.Error("not ready before the end")
	}
	stop()
	for s.Ready() { // another goroutine tells the front end
		time.Sleep(time.Millisecond)
	}
	if _, err := api.Metrics(t.Context(), at.Metrics); err != nil {
		t.Errorf("metrics while a request is in flight: %v", err)
	}
	close(release)
	if err := <-answered; err != nil {
		t.Errorf("the request in flight: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	if want := "Started HTTPService at " + at.HTTP; !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %q:\n%s", want, log.String())
	}
}

// A server that is asked to end is unready at once, but accepts clients until its delay has passed.
func TestDrainDelay(t *testing.T) {
	t.Parallel()
	s := server(t, &enginetest.Backend{})
	local := frontends.Listen{Enabled: true, Address: "127.0.0.1"}
	f, err := frontends.Open(s, frontends.Options{HTTP: local, GRPC: local, Metrics: local, DrainDelay: time.Hour, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	paused, proceed := make(chan time.Duration), make(chan struct{})
	f.SetPause(func(d time.Duration) { paused <- d; <-proceed })
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- f.Serve(ctx, time.Minute) }()
	at := f.Addresses()
	early, err := net.Dial("tcp", at.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	if got := ask(t, early, "/v2/health/ready"); !strings.Contains(got, " 200 ") {
		t.Errorf("before the end: %s", got)
	}
	stop()
	if d := <-paused; d != time.Hour {
		t.Errorf("waits for %v, want an hour", d)
	}
	late, err := net.Dial("tcp", at.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if got := ask(t, late, "/v2/health/ready"); !strings.Contains(got, " 503 ") {
		t.Errorf("ready in the delay: %s", got)
	}
	if got := ask(t, early, "/v2/models/fake"); !strings.Contains(got, " 200 ") || !strings.Contains(got, "Connection: close") {
		t.Errorf("a connection from before: %s", got)
	}
	c, err := api.NewGRPC(at.GRPC)
	if err != nil {
		t.Fatal(err)
	}
	if ready, err := c.ServerReady(t.Context()); ready || err != nil {
		t.Errorf("gRPC in the delay: ready %t, %v", ready, err)
	}
	if ready, err := c.ModelReady(t.Context(), "fake"); !ready || err != nil {
		t.Errorf("the model in the delay: ready %t, %v", ready, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	close(proceed)
	if err := <-served; err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", at.HTTP); err == nil {
		t.Error("accepts connections after the delay")
		_ = c.Close()
	}
}

// ask sends a request on a connection and returns the beginning of the answer.
func ask(t *testing.T, conn net.Conn, path string) string {
	t.Helper()
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4096)
	n, err := conn.Read(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer[:n])
}
