package triton

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tuner/engine/api"
)

// open returns a client of a handler.
func open(t *testing.T, h http.HandlerFunc) *Server {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	s := Open(strings.TrimPrefix(server.URL, "http://"), api.Access{})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Counts are the sums over the versions, of answered and failed requests. Triton counts from 0 after a load:
// 10 + 1, then 25 + 1, then 4 after a load are 30 requests. Then 2 are of a load by somebody else, which is an error once.
func TestArrived(t *testing.T) {
	t.Parallel()
	answers := [][3]int{{4, 6, 1}, {4, 21, 1}, {0, 4, 0}, {0, 4, 0}, {0, 2, 0}, {0, 5, 0}}
	at := 0
	s := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/repository/models/m/load" {
			return
		}
		if r.URL.Path != "/v2/models/m/stats" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		a := answers[at]
		at++
		fmt.Fprintf(w, `{"model_stats":[{"name":"m","version":"1","inference_stats":{"success":{"count":%d},"fail":{"count":0}}},`+
			`{"name":"m","version":"2","inference_stats":{"success":{"count":%d},"fail":{"count":%d}}}]}`, a[0], a[1], a[2])
	})
	for i, want := range []uint64{11, 26, 30, 30, 0, 35} {
		if i == 2 {
			if err := s.Reconfigure(t.Context(), "m", "{}"); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := s.Arrived(t.Context(), "m"); (err != nil) != (want == 0) || n != want {
			t.Errorf("question %d: %d requests (%v), want %d", i, n, err, want)
		}
	}
}

// A load has the configuration as a string. A server that refuses it says why.
func TestReconfigure(t *testing.T) {
	t.Parallel()
	refuses := false
	s := open(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/v2/repository/models/m/load" || string(body) != `{"parameters":{"config":"{\"name\": \"m\"}"}}` {
			t.Errorf("%s with %s", r.URL.Path, body)
		}
		if refuses {
			http.Error(w, `{"error":"explicit model load / unload is not allowed if polling is enabled"}`, http.StatusServiceUnavailable)
		}
	})
	if err := s.Reconfigure(t.Context(), "m", `{"name": "m"}`); err != nil {
		t.Error(err)
	}
	refuses = true
	if err := s.Reconfigure(t.Context(), "m", `{"name": "m"}`); err == nil || !strings.Contains(err.Error(), "polling is enabled") {
		t.Errorf("%v", err)
	}
}
