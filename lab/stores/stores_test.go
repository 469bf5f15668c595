//go:build stores

package stores

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/lab/peers"
)

// config is that of a model that needs no file.
func config(batch int) string {
	return fmt.Sprintf(`backend: "identity" max_batch_size: %d instance_group { kind: KIND_CPU }
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 2 ] } output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 2 ] }`, batch)
}

// fill puts models a and b into the repository, and things that are no models.
func (e *emulator) fill(t *testing.T) {
	t.Helper()
	for key, text := range map[string]string{
		"repo/a/config.pbtxt": config(4), "repo/a/1/weights": strings.Repeat("w", 20<<20), "repo/b/config.pbtxt": config(4), "repo/b/1/weights": "",
		"repo/README.md": "no model", "elsewhere/c/config.pbtxt": config(4), "elsewhere/c/1/weights": "x",
	} {
		if err := e.put(t.Context(), key, text); err != nil {
			t.Fatal(err)
		}
	}
}

// engine starts the engine on the repository.
func (e *emulator) engine(t *testing.T, args ...string) *peers.Server {
	t.Helper()
	binary := os.Getenv("TUNER_BINARY")
	if binary == "" {
		t.Fatal("TUNER_BINARY is not set: run make -C lab stores")
	}
	temporary := t.TempDir()
	server := append(append([]string{"env", "TMPDIR=" + temporary}, e.env...), binary, "serve")
	s, err := peers.StartServer(t.Context(), server, e.repository, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(temporary, "tuner-repository-*")); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
		if strings.Contains(s.Output(), secret) {
			t.Error("the log has the secret")
		}
		if t.Failed() {
			t.Log(s.Output())
		}
	})
	return s
}

// get returns the status and body of an answer.
func get(t *testing.T, s *peers.Server, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.HTTP+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// infers reports whether a model answers.
func infers(t *testing.T, s *peers.Server, model string) bool {
	t.Helper()
	status, text := get(t, s, http.MethodPost, "/v2/models/"+model+"/infer", `{"inputs":[{"name":"INPUT0","shape":[1,2],"datatype":"FP32","data":[1,2]}]}`)
	return status == http.StatusOK && strings.Contains(text, `"data":[1.0,2.0]`)
}

// batch returns a model's largest batch.
func batch(t *testing.T, s *peers.Server, model string) int {
	t.Helper()
	_, text := get(t, s, http.MethodGet, "/v2/models/"+model+"/config", "")
	var c struct {
		Max int `json:"max_batch_size"`
	}
	_ = json.Unmarshal([]byte(text), &c) // without a model it is an error, and the batch 0
	return c.Max
}

func eachStore(t *testing.T, test func(t *testing.T, e *emulator)) {
	for scheme, start := range emulators {
		t.Run(scheme, func(t *testing.T) {
			e := start(t)
			e.fill(t)
			test(t, e)
		})
	}
}

// All models are served, and nothing else of the bucket is.
func TestNone(t *testing.T) {
	eachStore(t, func(t *testing.T, e *emulator) {
		s := e.engine(t)
		if !infers(t, s, "a") || !infers(t, s, "b") || infers(t, s, "c") {
			t.Error("the models that answer are not a and b")
		}
	})
}

// The index has the names, a load fetches the model as it is then, and the store may go meanwhile.
func TestExplicit(t *testing.T) {
	eachStore(t, func(t *testing.T, e *emulator) {
		s := e.engine(t, "--model-control-mode=explicit", "--load-model=b")
		if _, text := get(t, s, http.MethodPost, "/v2/repository/index", ""); text != `[{"name":"a"},{"name":"b","version":"1","state":"READY"}]` {
			t.Errorf("index: %s", text)
		}
		for _, size := range []int{4, 8} {
			if err := e.put(t.Context(), "repo/a/config.pbtxt", config(size)); err != nil {
				t.Fatal(err)
			}
			if status, text := get(t, s, http.MethodPost, "/v2/repository/models/a/load", ""); status != http.StatusOK || batch(t, s, "a") != size || !infers(t, s, "a") {
				t.Errorf("load: %d %s, batch %d, want %d", status, text, batch(t, s, "a"), size)
			}
		}
		if status, _ := get(t, s, http.MethodPost, "/v2/repository/models/c/load", ""); status == http.StatusOK {
			t.Error("a model beside the repository was loaded")
		}
		if err := e.drop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if status, text := get(t, s, http.MethodPost, "/v2/repository/models/a/load", ""); status != http.StatusServiceUnavailable || !strings.Contains(text, "cannot list") {
			t.Errorf("load without a bucket: %d %s", status, text)
		}
		if !infers(t, s, "a") || !infers(t, s, "b") {
			t.Error("models left service with their bucket")
		}
	})
}

// Models come, change and go with their objects, and stay when the bucket goes.
func TestPoll(t *testing.T) {
	eachStore(t, func(t *testing.T, e *emulator) {
		s := e.engine(t, "--model-control-mode=poll", "--repository-poll-secs=1")
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(e.put(t.Context(), "repo/a/config.pbtxt", config(8)))
		eventually(t, "a has changed", func() bool { return batch(t, s, "a") == 8 })
		must(e.put(t.Context(), "repo/d/config.pbtxt", config(4)))
		must(e.put(t.Context(), "repo/d/1/weights", "w"))
		eventually(t, "d has come", func() bool { return infers(t, s, "d") })
		must(e.remove(t.Context(), "repo/d/config.pbtxt"))
		must(e.remove(t.Context(), "repo/d/1/weights"))
		eventually(t, "d has gone", func() bool { return !infers(t, s, "d") })
		must(e.drop(t.Context()))
		eventually(t, "the log says that there is no bucket", func() bool {
			return strings.Count(s.Output(), "cannot poll the model repositories, so all models stay as they are") > 2
		})
		if !infers(t, s, "a") || !infers(t, s, "b") {
			t.Error("models left service with their bucket")
		}
	})
}

// A server without a bucket, or with a wrong key, does not start, and says why without the key.
func TestRefusals(t *testing.T) {
	const wrong = "d3Jvbmcgd3Jvbmcgd3Jvbmcgd3Jvbmcgd3Jvbmcgd3Jvbmc="
	for scheme, start := range emulators {
		t.Run(scheme, func(t *testing.T) {
			e := start(t)
			check := func(what string, env []string) {
				t.Helper()
				server := append(append([]string{"env"}, env...), os.Getenv("TUNER_BINARY"), "serve")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s, err := peers.StartServer(ctx, server, e.repository)
				if err == nil {
					t.Errorf("%s: the server has started", what)
					_ = s.Stop()
					return
				}
				if !strings.Contains(err.Error(), "cannot list ") || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), wrong) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if scheme == "as" { // the others do not check keys
				address := strings.TrimSuffix(strings.SplitAfter(e.env[0], "BlobEndpoint=http://")[1], "/account;")
				check("a wrong key", []string{"AZURE_STORAGE_CONNECTION_STRING=" + connectionTo(address, wrong)})
			}
			if err := e.drop(t.Context()); err != nil {
				t.Fatal(err)
			}
			check("no bucket", e.env)
		})
	}
}
