package vertexai

import (
	"net/http"
	"strings"
	"testing"

	"tuner/engine/api"
	"tuner/engine/rest"
)

func routes(t *testing.T) *Routes {
	t.Helper()
	r, err := New(func(name string) string {
		return map[string]string{predictVariable: "/predict(/v1)?", healthVariable: "/health"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFind(t *testing.T) {
	t.Parallel()
	r := routes(t)
	if err := r.SetModel("", []api.IndexEntry{{Name: "m", Version: "1"}}); err != nil {
		t.Fatal(err)
	}
	bad, get := rest.Call{Status: http.StatusBadRequest}, func(to string) rest.Call { return rest.Call{Target: to, Method: http.MethodGet} }
	for text, want := range map[string]rest.Call{
		"GET /health":                  {Target: "/v2/health/ready"},
		"GET /health/":                 bad,
		"GET /v2":                      bad,
		"POST /predict":                {Target: "/v2/models/m/infer"},
		"GET /predict/v1":              {Target: "/v2/models/m/infer"},
		"GET /predict v2":              {Status: http.StatusMethodNotAllowed},
		"POST /predict v2":             get("/v2"),
		"POST /predict v2/health/live": get("/v2/health/live"),
		"POST /predict v2/models/a/versions/2/config":              get("/v2/models/a/versions/2/config"),
		"POST /predict v2/models/a/versions/2/infer":               {Target: "/v2/models/a/versions/2/infer"},
		"POST /predict v2/models/a/generate":                       bad,
		"POST /predict v2/logging":                                 bad,
		"POST /predict metrics":                                    {Metrics: true},
		"POST /predict v2/repository/index":                        {Target: "/v2/repository/index"},
		"POST /predict v2/repository/r/models/a/load":              {Status: http.StatusForbidden},
		"POST /predict v2/systemsharedmemory/region/x/status":      get("/v2/systemsharedmemory/region/x/status"),
		"POST /predict v2/systemsharedmemory/unregister":           {Status: http.StatusForbidden},
		"POST /predict v2/cudasharedmemory/region/x/register":      {Status: http.StatusForbidden},
		"POST /predict v2/repository/models/a/load?x":              bad,
		"POST /predict v2/models/a/ready\nv2/models/a/config":      bad,
		"POST /predict /v2":                                        bad,
		"POST /predict v2/models/a/../../repository/models/b/load": bad,
	} {
		method, rest, _ := strings.Cut(text, " ")
		path, to, redirected := strings.Cut(rest, " ")
		got := r.Find(method, path, func(string) []byte {
			if redirected {
				return []byte(to)
			}
			return nil
		})
		if got != want {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
}

// The texts are those of a real Triton that does not start.
func TestSetModel(t *testing.T) {
	t.Parallel()
	two := []api.IndexEntry{{Name: "a", Version: "1"}, {Name: "b", Version: "1"}}
	for wanted, text := range map[string]string{
		"a": "",
		"c": "Expect the default model 'c' is loaded",
		"":  "Expect the model repository contains only a single model if default model is not specified",
	} {
		err := routes(t).SetModel(wanted, two)
		if (err == nil) != (text == "") || err != nil && !strings.HasSuffix(err.Error(), text) {
			t.Errorf("%q: got %v, want %q", wanted, err, text)
		}
	}
}
