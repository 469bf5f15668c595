package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/enginetest"
	"tuner/engine/frontends"
	"tuner/engine/rest"
	"tuner/engine/trace"
)

// tracedServer serves the fake model with trace settings that can be turned on.
func tracedServer(t testing.TB) *engine.Server {
	t.Helper()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "fake", enginetest.FakeConfig(4))
	log := slog.New(slog.DiscardHandler)
	tracer := trace.New(trace.Config{Rate: 1000, Count: -1, File: filepath.Join(root, "traces")}, nil, log)
	s, err := engine.Open(t.Context(), engine.Options{Repositories: []string{root}, Backend: &enginetest.Backend{}, Tracer: tracer, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if err := tracer.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// served starts a front end of tracedServer. It returns the address.
func served(t testing.TB, restricted api.Restrictions) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := rest.New(tracedServer(t), rest.Options{Restricted: restricted, Log: slog.New(slog.DiscardHandler)})
	ended := make(chan error, 1)
	go func() { ended <- f.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(f.Shutdown(context.WithoutCancel(t.Context())), <-ended); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// ask asks a front end.
func ask(t testing.TB, address, method, path, body string) (status int, text string) {
	t.Helper()
	a := call(t, &enginetest.Engine{Addresses: frontends.Addresses{HTTP: address}}, method, path, body)
	return a.status, a.body
}

// The answers are Triton's.
func TestTraceSetting(t *testing.T) {
	t.Parallel()
	address := served(t, nil)
	const server, model = "/v2/trace/setting", "/v2/models/fake/trace/setting"
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string // part of the answer
	}{
		{http.MethodGet, server, "", 200, `"trace_level":["OFF"]`},
		{http.MethodGet, model, "", 200, `"trace_rate":"1000"`},
		{http.MethodGet, "/v2/models/none/trace/setting", "", 400, `{"error":"Request for unknown model : none"}`},
		{http.MethodGet, "/v2/models/fake/versions/1/trace/setting", "", 404, "Not Found"},
		{http.MethodPut, server, "", 405, "Method Not Allowed"},
		{http.MethodPost, server, "", 500, "failed to parse the request JSON buffer: The document is empty. at 0"},
		{http.MethodPost, server, "[]", 200, `"trace_mode":"triton"`},
		{http.MethodPost, server, "1", 200, `"trace_mode":"triton"`},
		{http.MethodPost, server, `{"trace_level":"OFF"}`, 500, "attempt to access JSON non-array as array"},
		{http.MethodPost, server, `{"trace_level":[1]}`, 500, "attempt to access JSON non-string as string"},
		{http.MethodPost, server, `{"trace_rate":5}`, 500, "attempt to access JSON non-string as string"},
		{http.MethodPost, server, `{"trace_file":"x"}`, 501, "trace file location can not be updated through network protocol"},
		{http.MethodPost, server, `{"trace_count":"-2"}`, 400, "Unable to parse 'trace_count'. Expecting value >= -1, got:-2"},
		{http.MethodPost, model, `{"trace_level":["TIMESTAMPS","TENSORS"],"trace_rate":"5"}`, 200, `"trace_level":["TIMESTAMPS","TENSORS"]`},
		{http.MethodGet, server, "", 200, `"trace_level":["OFF"]`},
		{http.MethodPost, model, `{"trace_level":null,"trace_rate":null}`, 200, `"trace_rate":"1000"`},
	} {
		if status, text := ask(t, address, c.method, c.path, c.body); status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %s %s: %d %s, want %d %s", c.method, c.path, c.body, status, text, c.status, c.want)
		}
	}
}

// Whatever is sent, the settings stay such that something is traced, or the level is OFF. What is
// refused changes nothing, and sending it again gives the same.
func FuzzTraceSetting(f *testing.F) {
	for _, seed := range []string{`{"trace_level":["TIMESTAMPS"]}`, `{"trace_rate":" -5x","trace_count":null}`, `{"trace_level":["OFF","TENSORS"]}`, `{"log_frequency":"10000000000"}`, `{"trace_file":null}`, `[]`, `{`} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	address := served(f, nil)
	f.Fuzz(func(t *testing.T, body string, ofModel bool) {
		path := "/v2/trace/setting"
		if ofModel {
			path = "/v2/models/fake/trace/setting"
		}
		_, before := ask(t, address, http.MethodGet, path, "")
		status, answer := ask(t, address, http.MethodPost, path, body)
		_, after := ask(t, address, http.MethodGet, path, "")
		if status >= http.StatusBadRequest {
			if before != after {
				t.Errorf("%q is refused and changes %s to %s", body, before, after)
			}
			return
		}
		if answer != after {
			t.Errorf("%q: the answer is %s, the settings are %s", body, answer, after)
		}
		if _, again := ask(t, address, http.MethodPost, path, body); again != after {
			t.Errorf("%q: twice gives %s, once %s", body, again, after)
		}
		var settings struct {
			Level []string `json:"trace_level"`
			Rate  string   `json:"trace_rate"`
			Count string   `json:"trace_count"`
		}
		if err := json.Unmarshal([]byte(after), &settings); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(settings.Level, []string{"OFF"}) && (settings.Rate == "0" || settings.Count == "0" || strings.HasPrefix(settings.Count, "-") && settings.Count != "-1") {
			t.Errorf("%q gives %s", body, after)
		}
	})
}

// The header of a restricted category protects both methods.
func TestTraceSettingIsRestricted(t *testing.T) {
	t.Parallel()
	address := served(t, api.Restrictions{api.CategoryTrace: {Header: "key", Value: "x"}})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if status, _ := ask(t, address, method, "/v2/trace/setting", "{}"); status != http.StatusForbidden {
			t.Errorf("%s: status %d", method, status)
		}
	}
}
