// Package vertexai has the paths under which Google's Vertex AI calls a container: those of the
// environment, for health and for predictions of the default model. A header asks for another of
// Triton's calls. It stands between a front end of package engine/rest, which serves the calls, and
// the environment.
//
// It refuses calls with effects in that header, as newer Tritons do: loading models, and registering
// shared memory.
package vertexai

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"

	"tuner/engine/api"
	"tuner/engine/rest"
)

// Variables of Vertex AI's environment. Their values are regular expressions, as in Triton.
const (
	predictVariable = "AIP_PREDICT_ROUTE"
	healthVariable  = "AIP_HEALTH_ROUTE"
)

// redirect names another call.
const redirect = "X-Vertex-Ai-Triton-Redirect"

// Routes implements rest.Dialect.
type Routes struct {
	predict, health *regexp.Regexp
	model           atomic.Pointer[string] // nil: models are being loaded
}

// New reads the environment. Errors have Triton's texts where it has some.
func New(environment func(name string) string) (*Routes, error) {
	r := &Routes{}
	for _, one := range []struct {
		variable, text string
		to             **regexp.Regexp
	}{
		{predictVariable, "API_PREDICT_ROUTE is not defined for Vertex AI endpoint", &r.predict}, // sic
		{healthVariable, "AIP_HEALTH_ROUTE is not defined for Vertex AI endpoint", &r.health},
	} {
		value := environment(one.variable)
		if value == "" {
			return nil, fmt.Errorf("cannot start Vertex AI HTTPService: %s", one.text)
		}
		var err error
		if *one.to, err = regexp.Compile("^(?:" + value + ")$"); err != nil {
			return nil, fmt.Errorf("cannot start Vertex AI HTTPService: %s=%q is not a regular expression: %w", one.variable, value, err)
		}
	}
	return r, nil
}

// SetModel chooses the model of predictions, once the models have been loaded. wanted is its name, or ""
// for the only one. ready are the models that serve, one for each version.
func (r *Routes) SetModel(wanted string, ready []api.IndexEntry) error {
	for _, entry := range ready {
		if entry.Name == wanted || wanted == "" && len(ready) == 1 {
			r.model.Store(&entry.Name)
			return nil
		}
	}
	if wanted == "" {
		return errors.New("failed to start Vertex AI service: Invalid argument - Expect the model repository contains only a single model if default model is not specified")
	}
	return fmt.Errorf("failed to start Vertex AI service: Invalid argument - Expect the default model '%s' is loaded", wanted)
}

// MediaTypes implements rest.Dialect. Triton's answers have the headers of its own paths.
func (*Routes) MediaTypes() (request, answer string) {
	return "application/vnd.vertex-ai-triton.binary+json;json-header-size=", ""
}

// Find implements rest.Dialect.
func (r *Routes) Find(method, path string, header func(string) []byte) rest.Call {
	if r.health.MatchString(path) {
		return rest.Call{Target: "/v2/health/ready"}
	}
	if !r.predict.MatchString(path) {
		return rest.Call{Status: http.StatusBadRequest}
	}
	to := header(redirect)
	if to == nil {
		model := r.model.Load()
		if model == nil {
			return rest.Call{Status: http.StatusServiceUnavailable}
		}
		return rest.Call{Target: "/v2/models/" + *model + "/infer"}
	}
	if method != http.MethodPost {
		return rest.Call{Status: http.StatusMethodNotAllowed}
	}
	return redirected("/" + string(to))
}

// ofModel are the calls about a model that a header may name, and their methods.
var ofModel = regexp.MustCompile(`^/v2/models/[^/]+(?:/versions/[0-9]+)?(?:/(infer|ready|config|stats))?$`)

// others are the further calls.
var (
	reads  = regexp.MustCompile(`^/v2(?:|/models/stats|/health/(?:live|ready)|/(?:system|cuda)sharedmemory(?:/region/[^/]+)?/status)$`)
	index  = regexp.MustCompile(`^/v2/repository(?:/[^/]+)?/index$`)
	writes = regexp.MustCompile(`^/v2/(?:(?:system|cuda)sharedmemory(?:/region/[^/]+)?/(?:un)?register|repository(?:/[^/]+)?/models/[^/]+/(?:un)?load)$`)
)

// redirected returns the call that a header names. Vertex AI itself sends POST alone.
func redirected(target string) rest.Call {
	switch {
	case target == "/metrics":
		return rest.Call{Metrics: true}
	case reads.MatchString(target):
		return rest.Call{Target: target, Method: http.MethodGet}
	case index.MatchString(target):
		return rest.Call{Target: target}
	case writes.MatchString(target):
		return rest.Call{Status: http.StatusForbidden}
	case ofModel.MatchString(target) && strings.HasSuffix(target, "/infer"):
		return rest.Call{Target: target}
	case ofModel.MatchString(target):
		return rest.Call{Target: target, Method: http.MethodGet}
	}
	return rest.Call{Status: http.StatusBadRequest}
}
