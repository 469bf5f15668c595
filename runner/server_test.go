package runner

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/engine/api"
)

// playServer is a tritonserver that serves nothing but its readiness and its metadata, and prints its options.
func playServer() int {
	var port string
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	flags.StringVar(&port, "http-port", "", "")
	for _, name := range []string{"http-address", "grpc-address", "grpc-port", "metrics-address", "metrics-port", "model-repository", "model-control-mode", "extra"} {
		flags.String(name, "", "")
	}
	if err := flags.Parse(os.Args[1:]); err != nil {
		return 2
	}
	flags.Visit(func(f *flag.Flag) { fmt.Printf("%s=%s\n", f.Name, f.Value) })
	fmt.Println("variable " + os.Getenv("TUNER_TEST_VARIABLE"))
	mux := http.NewServeMux()
	mux.HandleFunc("/v2/health/ready", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/v2", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"name":"triton","version":"9.9.9"}`) })
	if err := http.ListenAndServe(net.JoinHostPort("127.0.0.1", port), mux); err != nil {
		fmt.Println(err)
	}
	return 1
}

// local launches this test binary in a role.
func local(role string) Local {
	return Local{Server: os.Args[0], Args: []string{"--extra=yes"}, Start: time.Minute, Drain: time.Minute,
		Environment: map[string]string{roleVariable: role, "TUNER_TEST_VARIABLE": "set"}}
}

func TestLocalServer(t *testing.T) {
	t.Parallel()
	l := local("server")
	l.Log = filepath.Join(t.TempDir(), "logs", "server.log")
	engine, err := l.Launch(t.Context(), "/models", "ignored")
	if err != nil {
		t.Fatal(err)
	}
	if a := engine.Address(); a.HTTP == a.GRPC || a.GRPC == a.Metrics || engine.PID() == 0 {
		t.Errorf("addresses %+v, pid %d", a, engine.PID())
	}
	engine.Stop(t.Context())
	<-engine.Done()
	if exit := engine.Exit(); exit.Text != "signal: terminated" {
		t.Errorf("ended with %+v, want by SIGTERM", exit)
	}
	log, err := os.ReadFile(l.Log)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"model-repository=/models", "model-control-mode=explicit", "extra=yes", "variable set", "metrics-address=127.0.0.1"} {
		if !strings.Contains(string(log), want) || !strings.Contains(engine.LastWords(), want) {
			t.Errorf("%q is not in the log %q, or not in the last words", want, log)
		}
	}
}

func TestServerVersion(t *testing.T) {
	t.Parallel()
	if version, err := ServerVersion(t.Context(), local("server"), HTTP, "/models"); err != nil || version != "9.9.9" {
		t.Errorf("version %q, %v", version, err)
	}
}

func TestServersThatDoNotStart(t *testing.T) {
	t.Parallel()
	var start *StartError
	if _, err := local("failing").Launch(t.Context(), "/models", ""); !errors.As(err, &start) ||
		!strings.HasPrefix(start.Reason, "it ended before it was ready (exit status 7); its last words:\nline 11\n") {
		t.Errorf("failing: %v", err)
	}
	slow := local("unready")
	slow.Start = 100 * time.Millisecond
	if _, err := slow.Launch(t.Context(), "/models", ""); !errors.As(err, &start) || start.Reason != "it was not ready within 100ms" {
		t.Errorf("unready: %v", err)
	}
	stopped := errors.New("stopped by the user")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if _, err := local("unready").Launch(ctx, "/models", ""); !errors.Is(err, stopped) {
		t.Errorf("cancelled: %v", err)
	}
	none := Local{Server: "/nonexistent/tritonserver"}
	if _, err := none.Launch(t.Context(), "/models", ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no program: %v", err)
	}
}

func TestRemoteServer(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer server.Close()
	remote := Remote{Address: api.Announcement{HTTP: strings.TrimPrefix(server.URL, "http://")}, Dial: HTTP}
	engine, err := remote.Launch(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	engine.Stop(t.Context()) // does nothing to it
	if _, err := remote.Launch(t.Context(), "", ""); err != nil || engine.PID() != 0 {
		t.Errorf("after Stop: %v, pid %d", err, engine.PID())
	}
	status = http.StatusBadRequest
	var start *StartError
	if _, err := remote.Launch(t.Context(), "", ""); !errors.As(err, &start) {
		t.Errorf("not ready: %v", err)
	}
	server.Close()
	if _, err := remote.Launch(t.Context(), "", ""); err == nil || !strings.HasPrefix(err.Error(), "cannot reach the server at 127.0.0.1:") {
		t.Errorf("gone: %v", err)
	}
}
