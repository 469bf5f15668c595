// Package sagemaker has the paths under which Amazon SageMaker calls a container: /ping and /invocations
// for the model that the environment names, and /models for endpoints with several models, which it loads
// from folders below /opt/ml/models. It stands between a front end of package engine/rest, which serves
// the calls, and the engine.
//
// It loads no folder elsewhere, since requests name it.
package sagemaker

import (
	"fmt"
	"strings"

	"tuner/engine/rest"
)

// Variables of the environment, with their defaults. All are Triton's.
const (
	modelVariable = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
	pingVariable  = "SAGEMAKER_TRITON_PING_MODE" // ready or live
)

// Routes implements rest.Dialect.
type Routes struct {
	ping, invocations string
	models            *models
}

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
	return &Routes{ping: "/v2/health/" + mode, invocations: "/v2/models/" + model + "/infer", models: newModels(root)}, nil
}

// MediaTypes implements rest.Dialect.
func (*Routes) MediaTypes() (request, answer string) {
	const media = "application/vnd.sagemaker-triton.binary+json;json-header-size="
	return media, media
}

// Find implements rest.Dialect.
func (r *Routes) Find(method, path string, header func(string) []byte) rest.Call {
	switch path {
	case "/ping":
		return rest.Call{Target: r.ping}
	case "/invocations":
		return rest.Call{Target: r.invocations}
	}
	return r.models.find(method, path, string(header(targetHeader)))
}
