// Package sagemaker has the paths under which Amazon SageMaker calls a container with one model: /ping
// and /invocations. It stands between a front end of package engine/rest, which serves the calls, and
// the environment, which names the model.
//
// It refuses SageMaker's multi-model paths (/models): these load folders that requests name.
package sagemaker

import (
	"fmt"
	"net/http"
	"strings"

	"tuner/engine/rest"
)

// Variables of the environment, with their defaults. All are Triton's.
const (
	modelVariable = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
	pingVariable  = "SAGEMAKER_TRITON_PING_MODE" // ready or live
)

// Routes implements rest.Dialect.
type Routes struct{ ping, invocations string }

// New reads the environment. An error means that a variable has a value that cannot work.
func New(environment func(name string) string) (*Routes, error) {
	mode, model := environment(pingVariable), environment(modelVariable)
	if mode == "" {
		mode = "ready"
	}
	if mode != "ready" && mode != "live" {
		return nil, fmt.Errorf("cannot answer SageMaker's /ping: %s is %q; set ready or live", pingVariable, mode)
	}
	if model == "" {
		model = "unspecified_" + modelVariable
	}
	if strings.Contains(model, "/") {
		return nil, fmt.Errorf("cannot serve SageMaker's /invocations: %s is %q, which is no name of a model", modelVariable, model)
	}
	return &Routes{ping: "/v2/health/" + mode, invocations: "/v2/models/" + model + "/infer"}, nil
}

// MediaTypes implements rest.Dialect.
func (*Routes) MediaTypes() (request, answer string) {
	const media = "application/vnd.sagemaker-triton.binary+json;json-header-size="
	return media, media
}

// Find implements rest.Dialect.
func (r *Routes) Find(_, path string, _ func(string) []byte) rest.Call {
	switch {
	case path == "/ping":
		return rest.Call{Target: r.ping}
	case path == "/invocations":
		return rest.Call{Target: r.invocations}
	case strings.HasPrefix(path, "/models"):
		return rest.Call{Status: http.StatusNotImplemented}
	}
	return rest.Call{Status: http.StatusBadRequest}
}
