package frontends_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/enginetest"
	"tuner/engine/frontends"
	"tuner/engine/rest"
	"tuner/engine/sagemaker"
	"tuner/engine/vertexai"
)

// Clouds call the server under their own paths, and what is restricted for HTTP is restricted there.
func TestClouds(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "m", "max_batch_size: 4")
	environment := func(name string) string {
		return map[string]string{"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "m", "AIP_HEALTH_ROUTE": "/health", "AIP_PREDICT_ROUTE": "/predict"}[name]
	}
	amazon, err := sagemaker.New(environment)
	if err != nil {
		t.Fatal(err)
	}
	google, err := vertexai.New(environment)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s, err := engine.Open(t.Context(), engine.Options{Repositories: []string{root}, ExitOnError: true, Backend: &enginetest.Backend{}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	on := func(port int) frontends.Listen {
		return frontends.Listen{Enabled: true, Address: "127.0.0.1", Port: port}
	}
	ports := [2]int{free(t), free(t)}
	f, err := frontends.Open(s, frontends.Options{
		Clouds: []frontends.Cloud{
			{Listen: on(ports[0]), Name: "SageMaker", Routes: amazon},
			{Listen: on(ports[1]), Name: "Vertex AI", Routes: google, Loaded: func(ready []api.IndexEntry) error { return google.SetModel("", ready) }},
		},
		REST: rest.Options{Log: log, Restricted: api.Restrictions{api.CategoryModelRepository: {Header: "k", Value: "v"}}}, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- f.Serve(ctx, time.Minute) }()
	const data = `[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]`
	const good = `{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1,16],"data":` + data + `},{"name":"INPUT1","datatype":"INT32","shape":[1,16],"data":` + data + `}]}`
	const redirect = "X-Vertex-Ai-Triton-Redirect"
	check := func(cloud int, method, path, header, value, body string, status int, part string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:"+strconv.Itoa(ports[cloud])+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			r.Header.Set(header, value)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != status || !strings.Contains(string(text), part) {
			t.Errorf("%s %s (%s: %s): got %d %s, %v; want %d with %q", method, path, header, value, answer.StatusCode, text, err, status, part)
		}
	}
	check(1, "POST", "/predict", "", "", good, 503, "")
	if err := f.Loaded(); err != nil {
		t.Fatal(err)
	}
	check(0, "GET", "/ping", "", "", "", 200, "")
	check(0, "POST", "/invocations", "", "", good, 200, `"name":"OUTPUT0"`)
	check(0, "POST", "/invocations", "Origin", "http://evil.example", good, 403, "")
	check(0, "POST", "/v2/models/m/infer", "", "", good, 400, "")
	check(0, "GET", "/models", "", "", "", 403, "restricted")
	check(0, "GET", "/models", "k", "v", "", 200, `{"models":[]}`)
	check(0, "DELETE", "/models/m", "k", "v", "", 404, "")
	check(0, "POST", "/models/m/invoke", "", "", good, 404, "")
	check(0, "POST", "/models", "k", "v", `{"model_name":"m","url":"/dev/shm"}`, 400, "expected a path of the form")
	check(1, "GET", "/health", "", "", "", 200, "")
	check(1, "POST", "/predict", "", "", good, 200, `"name":"OUTPUT0"`)
	check(1, "POST", "/predict", redirect, "metrics", "", 200, "nv_inference_request_success")
	check(1, "POST", "/predict", redirect, "v2/models/m", "", 200, `"name":"m"`)
	check(1, "POST", "/predict", redirect, "v2/repository/index", "", 403, "restricted")
	check(1, "POST", "/predict", redirect, "v2/repository/models/m/unload", "", 403, "")
	end()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// free returns a port that is free now.
func free(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
