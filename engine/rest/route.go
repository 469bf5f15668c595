package rest

import (
	"bytes"
	"net/http"
	"strconv"

	"tuner/engine/api"
	"tuner/engine/fault"
)

// verb is the action of a request.
type verb int

const (
	noVerb verb = iota
	serverLive
	serverReady
	serverMetadata
	logSettings
	modelMetadata
	modelReady
	modelConfig
	modelStatistics
	modelInfer
	modelGenerate
	modelGenerateStream
	traceSetting
	memoryStatus
	memoryUnregister
	memoryRegister
	repositoryIndex
	modelLoad
	modelUnload
	metricsPage // for a Dialect, like the next one
	ownCall
)

// demand holds the requirements of a verb for a request.
type demand struct {
	method   string       // "": GET or POST
	category api.Category // category of restrictions
}

func (v verb) demand() demand {
	switch v {
	case serverLive, serverReady, modelReady:
		return demand{http.MethodGet, api.CategoryHealth}
	case serverMetadata, modelMetadata:
		return demand{http.MethodGet, api.CategoryMetadata}
	case logSettings:
		return demand{"", api.CategoryLogging}
	case modelConfig:
		return demand{http.MethodGet, api.CategoryModelConfig}
	case modelStatistics:
		return demand{http.MethodGet, api.CategoryStatistics}
	case modelInfer, modelGenerate, modelGenerateStream:
		return demand{http.MethodPost, api.CategoryInference}
	case traceSetting:
		return demand{"", api.CategoryTrace}
	case metricsPage:
		return demand{"", api.CategoryMetadata}
	case memoryStatus:
		return demand{http.MethodGet, api.CategorySharedMemory}
	case memoryUnregister, memoryRegister:
		return demand{http.MethodPost, api.CategorySharedMemory}
	default:
		return demand{http.MethodPost, api.CategoryModelRepository}
	}
}

// route is the meaning of a path.
type route struct {
	verb    verb
	model   []byte // "": no model
	version []byte // digits; "": the newest
	named   bool   // the path names a repository
	method  string // in place of the request's; "": its own
	status  int    // of the answer, without a verb; 0: not found
	own     Own    // with ownCall
	failed  Statuses
	memory  string // kind of shared memory
	region  []byte // of that memory; nil: all
}

// routeOf returns the meaning of a request's target. It compares paths as they were sent, as Triton
// does. So each route has one spelling, and no other spelling bypasses a restriction of this server
// or of a proxy before it.
func routeOf(target []byte) route {
	path, ok := bytes.CutPrefix(pathOf(target), []byte("/v2"))
	if !ok {
		return route{}
	}
	switch string(path) {
	case "":
		return route{verb: serverMetadata}
	case "/health/live":
		return route{verb: serverLive}
	case "/health/ready":
		return route{verb: serverReady}
	case "/logging":
		return route{verb: logSettings}
	case "/models/stats":
		return route{verb: modelStatistics}
	case "/trace/setting":
		return route{verb: traceSetting}
	}
	if rest, ok := bytes.CutPrefix(path, []byte("/models/")); ok {
		return modelRoute(rest)
	}
	if rest, ok := bytes.CutPrefix(path, []byte("/repository/")); ok {
		return repositoryRoute(rest)
	}
	for _, kind := range []string{"system", cuda} {
		if rest, ok := bytes.CutPrefix(path, []byte("/"+kind+"sharedmemory")); ok {
			return memoryRoute(rest, kind)
		}
	}
	return route{}
}

// pathOf returns the path in a target.
func pathOf(target []byte) []byte {
	path, _, _ := bytes.Cut(target, []byte("?"))
	if rest, ok := bytes.CutPrefix(path, []byte("http://")); ok { // the absolute form, for proxies
		path = rest[max(0, bytes.IndexByte(rest, '/')):]
	}
	return path
}

// cuda is the kind of shared memory that no region has.
const cuda = "cuda"

// memoryRoute reads [/region/NAME]/status|register|unregister.
func memoryRoute(path []byte, kind string) route {
	r := route{memory: kind}
	if rest, ok := bytes.CutPrefix(path, []byte("/region/")); ok {
		if r.region, path = segment(rest); len(r.region) == 0 {
			return route{}
		}
	}
	switch string(path) {
	case "/status":
		r.verb = memoryStatus
	case "/unregister":
		r.verb = memoryUnregister
	case "/register":
		r.verb = memoryRegister
	default:
		return route{}
	}
	return r
}

// modelRoute reads MODEL[/versions/N][/VERB].
func modelRoute(path []byte) route {
	name, rest := segment(path)
	r := route{model: name}
	if tail, ok := bytes.CutPrefix(rest, []byte("/versions/")); ok {
		if r.version, rest = segment(tail); !isDigits(r.version) {
			return route{}
		}
	}
	switch string(rest) {
	case "":
		r.verb = modelMetadata
	case "/infer":
		r.verb = modelInfer
	case "/generate":
		r.verb = modelGenerate
	case "/generate_stream":
		r.verb = modelGenerateStream
	case "/ready":
		r.verb = modelReady
	case "/config":
		r.verb = modelConfig
	case "/stats":
		r.verb = modelStatistics
	case "/trace/setting":
		if len(r.version) == 0 {
			r.verb = traceSetting
		}
	}
	if len(name) == 0 || r.verb == noVerb {
		return route{}
	}
	return r
}

// repositoryRoute reads [REPOSITORY/]index and [REPOSITORY/]models/MODEL/load|unload.
func repositoryRoute(path []byte) route {
	if r := unnamedRoute(path); r.verb != noVerb {
		return r
	}
	name, rest := segment(path)
	if len(name) == 0 || len(rest) == 0 {
		return route{}
	}
	r := unnamedRoute(rest[1:])
	r.named = true
	return r
}

func unnamedRoute(path []byte) route {
	if string(path) == "index" {
		return route{verb: repositoryIndex}
	}
	path, ok := bytes.CutPrefix(path, []byte("models/"))
	if !ok {
		return route{}
	}
	name, rest := segment(path)
	switch {
	case len(name) == 0:
	case string(rest) == "/load":
		return route{verb: modelLoad, model: name}
	case string(rest) == "/unload":
		return route{verb: modelUnload, model: name}
	}
	return route{}
}

// segment splits a path before its first slash.
func segment(path []byte) (name, rest []byte) {
	if i := bytes.IndexByte(path, '/'); i >= 0 {
		return path[:i], path[i:]
	}
	return path, nil
}

func isDigits(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
}

// number returns the version in the route. 0 is the newest. No model has a version 0, so a request
// for the version 0 by its number finds none.
func (r *route) number() (int64, error) {
	if len(r.version) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(r.version), 10, 64)
	if err != nil {
		return 0, fault.Errorf(fault.InvalidArgument, "failed to get model version from specified version string '%s' (details: stol), version should be an integral value > 0", r.version)
	}
	if n > 0 {
		return n, nil
	}
	if r.verb == modelStatistics {
		return 0, fault.Errorf(fault.InvalidArgument, "requested model version is not available for model '%s'", r.model)
	}
	return 0, fault.Errorf(fault.NotFound, "Request for unknown model: '%s' version 0 is not found", r.model)
}
