package rest

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// A client that stops in the middle of a request gets an answer with the reason, and its connection
// ends.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := New(nil, Options{Log: slog.New(slog.DiscardHandler)})
	f.http.ReadTimeout, f.stall = 50*time.Millisecond, 50*time.Millisecond
	served := make(chan error, 1)
	go func() { served <- f.Serve(l) }()
	t.Cleanup(func() {
		if err := f.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	post := func(length, sent int) string {
		return fmt.Sprintf("POST /v2/repository/index HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", length, strings.Repeat("x", sent))
	}
	for name, tc := range map[string]struct{ text, want string }{
		"headers":        {"GET /v2 HTTP/1.1\r\nHost: ", "408"},
		"begin of body":  {post(100, 50), "408"},
		"large body":     {post(100_000, 50_000), "did not arrive in time"},
		"body in chunks": {"POST /v2/repository/index HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nxx", "did not arrive in time"},
	} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, tc.text); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn) // until the server closes the connection
		if err != nil || !strings.Contains(string(answer), tc.want) {
			t.Errorf("%s: got %q, %v, want %q", name, answer, err, tc.want)
		}
		_ = conn.Close() // everything has been read
	}
}
