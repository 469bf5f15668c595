package rest_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"tuner/engine/enginetest"
	"tuner/internal/proxytest"
)

// Behind a real proxy that keeps clients from model control, no request gets there hidden in
// another. No client gets the answer to another client's request.
func TestProxies(t *testing.T) {
	t.Parallel()
	for _, p := range proxytest.All() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			if !p.IsInstalled() {
				t.Skipf("%s is not installed: %s", p.Program, proxytest.Install)
			}
			dir, err := os.MkdirTemp("", "proxy") // t.TempDir is too long for a socket
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a failure has no effect
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			e := enginetest.Start(t, enginetest.Options{})
			socket, stop, err := p.Start(ctx, dir, e.Addresses.HTTP, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(stop)
			checkProxy(t, e, socket)
		})
	}
}

// checkProxy sends the corpus through a proxy.
func checkProxy(t *testing.T, e *enginetest.Engine, socket string) {
	t.Helper()
	const unload = "POST /v2/repository/models/fake/unload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
	const last = "GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	if got := through(t, socket, strings.Replace(unload, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)); len(got) != 1 || got[0].status != 403 {
		t.Fatalf("the proxy does not keep clients from model control: %v", got)
	}
	for _, tc := range framings(inferPath, unload) {
		through(t, socket, tc.text+last) // the proxy may do anything with it
		if err := e.Server.ModelReady("fake", 0); err != nil {
			t.Fatalf("%s: the hidden request has been served: %v", tc.name, err)
		}
		for range 3 {
			got := through(t, socket, "GET /v2/models/fake HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			if len(got) != 1 || got[0].status != 200 || !strings.HasPrefix(got[0].body, `{"name":"fake"`) {
				t.Errorf("after %s: another client got %v", tc.name, got)
			}
		}
	}
	if got := call(t, e, "POST", "/v2/repository/models/fake/unload", ""); got.status != 200 || e.Server.ModelReady("fake", 0) == nil {
		t.Errorf("without the proxy the model cannot be unloaded: %d", got.status)
	}
}

// through sends text to a proxy and returns its answers.
func through(t *testing.T, socket, text string) []answer {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(fmt.Errorf("cannot send to the proxy: %w", err))
	}
	return answers(t, conn)
}
