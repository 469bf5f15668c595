package sagemaker

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/engine"
	"tuner/engine/enginetest"
	"tuner/engine/rest"
)

// endpoint is an engine as SageMaker starts it for several models, and the folder of these.
type endpoint struct {
	t      *testing.T
	server *engine.Server
	models *models
	root   string
}

func newEndpoint(t *testing.T, explicit bool) *endpoint {
	t.Helper()
	s, err := engine.Open(t.Context(), engine.Options{
		Repositories: []string{t.TempDir()}, Explicit: explicit, Backend: &enginetest.Backend{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	dir := t.TempDir()
	return &endpoint{t: t, server: s, models: newModels(dir), root: dir}
}

// check makes a request and compares the status of its answer, and a part of the text.
func (e *endpoint) check(method, path, target, body string, status int, part string) {
	e.t.Helper()
	call := e.models.find(method, path, target)
	got := rest.Answer{Status: call.Status}
	if call.Own != nil {
		got = call.Own.Serve(e.t.Context(), e.server, []byte(strings.ReplaceAll(body, "ROOT", e.root)))
	}
	text := string(got.Body)
	if got.Err != nil {
		text = got.Err.Error()
	}
	text = strings.ReplaceAll(text, e.root, "ROOT")
	if got.Status != status || !strings.Contains(text, part) {
		e.t.Errorf("%s %s %s: got %d %s; want %d with %q", method, path, body, got.Status, text, status, part)
	}
}

// A model is loaded from its folder under another name, described, invoked and unloaded.
func TestModels(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, true)
	enginetest.WriteModel(t, filepath.Join(e.root, "a1"), "model", "max_batch_size: 4")
	enginetest.WriteModel(t, filepath.Join(e.root, "b2", "model"), "inner", "max_batch_size: 2")
	const first, second = `{"model_name":"a","url":"ROOT/a1/model"}`, `{"model_name":"b","url":"ROOT/b2/model/"}`
	e.check("GET", "/models", "", "", 200, `{"models":[]}`)
	e.check("POST", "/models", "", first, 200, "")
	e.check("POST", "/models", "", first, 409, "has already been registered")
	e.check("GET", "/models/a", "", "", 200, `{"modelName":"a","modelUrl":"ROOT/a1"}`)
	e.check("POST", "/models", "", second, 200, "")
	e.check("GET", "/models/", "", "", 200, `[{"modelName":"a","modelUrl":"ROOT/a1"},{"modelName":"b","modelUrl":"ROOT/b2/model"}]`)
	if got, want := e.models.find("POST", "/models/a/invoke", ""), (rest.Call{Target: "/v2/models/a/infer", Failed: failures{}}); got != want {
		t.Errorf("invoke: got %+v, want %+v", got, want)
	}
	if c, err := e.server.ModelConfig("a", 0); err != nil || c.GetName() != "a" || c.GetMaxBatchSize() != 4 {
		t.Errorf("the model has configuration %v, %v", c, err)
	}
	e.check("DELETE", "/models/a", "", "", 200, "")
	e.check("DELETE", "/models/a", "", "", 404, "")
	e.check("GET", "/models/a", "", "", 404, "")
	e.check("POST", "/models/a/invoke", "", "", 404, "")
	e.check("POST", "/models", "", first, 200, "") // again
	e.check("PUT", "/models/a", "", "", 400, "")
}

// The engine knows a model by the name of its archive, if SageMaker tells it. An archive may lie in a folder: its
// path is one name.
func TestTarget(t *testing.T) {
	t.Parallel()
	for archive, name := range map[string]string{
		"archive": "archive", "bert-v1.tar.gz": "bert-v1.tar.gz", "team-a/bert.tar.gz": "team-a%2Fbert.tar.gz", "50%2F a": "50%252F%20a",
	} {
		e := newEndpoint(t, true)
		enginetest.WriteModel(t, filepath.Join(e.root, "a1"), "model", "max_batch_size: 1")
		e.check("POST", "/models", archive, `{"model_name":"a","url":"ROOT/a1/model"}`, 200, "")
		if got := e.models.find("POST", "/models/a/invoke", archive).Target; got != "/v2/models/"+name+"/infer" {
			t.Errorf("%s: invoke asks for %s", archive, got)
		}
		if err := e.server.ModelReady(name, 0); err != nil {
			t.Errorf("%s: %v", archive, err)
		}
		e.check("GET", "/models", "", "", 200, `{"models":[{}]}`) // it is not ready under the other name, as in Triton
		e.check("DELETE", "/models/a", archive, "", 200, "")
		if e.server.ModelReady(name, 0) == nil {
			t.Errorf("%s: the model is still served", archive)
		}
	}
}

// Only folders below the root are loaded, and what cannot be loaded is not registered.
func TestModelsRefused(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, true)
	outside := t.TempDir()
	enginetest.WriteModel(t, outside, "model", "")
	enginetest.WriteModel(t, filepath.Join(e.root, "bad"), "model", "max_batch_size: -1")
	const form = "expected a path of the form"
	for _, url := range []string{"", "/", outside + "/model", "ROOT", "ROOT/../" + filepath.Base(outside) + "/model", "ROOT/a1/other", "ROOT/a1/model/b/c", "relative/model", "ROOT/a 1/model"} {
		e.check("POST", "/models", "", `{"model_name":"m","url":"`+url+`"}`, 400, form)
	}
	e.check("POST", "/models", "", `{"model_name":"m","url":"ROOT/none/model"}`, 400, "repository not found")
	e.check("POST", "/models", "", `{"model_name":"../m","url":"ROOT/bad/model"}`, 400, "model name")
	for range 2 { // not 409 the second time
		e.check("POST", "/models", "", `{"model_name":"m","url":"ROOT/bad/model"}`, 400, "failed to load 'm'")
	}
	e.check("POST", "/models", "", `{`, 400, "failed to parse the request JSON buffer")
	e.check("POST", "/models", "", ``, 400, form)
	e.check("GET", "/models", "", "", 200, `{"models":[]}`)
	polled := newEndpoint(t, false)
	enginetest.WriteModel(t, filepath.Join(polled.root, "a1"), "model", "max_batch_size: 1")
	polled.check("POST", "/models", "", `{"model_name":"m","url":"ROOT/a1/model"}`, 400, "repository registration is not allowed")
}

// Of several models in a folder the ensemble is meant.
func TestEnsembleOfFolder(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	m, dir := newModels(top), filepath.Join(top, "h", "model")
	for name, config := range map[string]string{"a": "", "both": "name: \"x\"\nplatform:  \"ensemble\"", "z": "backend: \"onnxruntime\""} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "config.pbtxt"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	repository, folder, err := m.locate(dir)
	if err != nil || repository != dir || folder != "both" {
		t.Errorf("got %s, %s, %v; want the ensemble in %s", repository, folder, err, dir)
	}
}

// A failure without memory has a status of its own, with which SageMaker makes room.
func TestFailures(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": http.StatusBadRequest, "wrong shape": http.StatusBadRequest, `{"error":"Failed to allocate memory for requested buffer"}`: 507} {
		if got := (failures{}).Status([]byte(text)); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}
