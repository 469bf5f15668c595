package sagemaker

import (
	"net/http"
	"testing"

	"tuner/engine/rest"
)

func TestFind(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		model, mode, path string
		want              rest.Call
	}{
		{"m", "", "/ping", rest.Call{Target: "/v2/health/ready"}},
		{"m", "live", "/ping", rest.Call{Target: "/v2/health/live"}},
		{"m", "", "/ping/", rest.Call{Status: http.StatusBadRequest}},
		{"m", "", "/invocations", rest.Call{Target: "/v2/models/m/infer"}},
		{"", "", "/invocations", rest.Call{Target: "/v2/models/unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME/infer"}},
		{"m", "", "/models/x/y", rest.Call{Status: http.StatusBadRequest}},
		{"m", "", "/v2/models/m/infer", rest.Call{Status: http.StatusBadRequest}},
	} {
		r, err := New(func(name string) string {
			return map[string]string{modelVariable: tc.model, pingVariable: tc.mode}[name]
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Find(http.MethodGet, tc.path, func(string) []byte { return nil }); got != tc.want {
			t.Errorf("%+v: got %+v", tc, got)
		}
	}
	for _, variables := range []map[string]string{{modelVariable: "a/versions/1"}, {pingVariable: "up"}} {
		if _, err := New(func(name string) string { return variables[name] }); err == nil {
			t.Errorf("%v is taken", variables)
		}
	}
}
