package sagemaker

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/fault"
	"tuner/engine/rest"
	"tuner/engine/rest/document"
)

// root is the folder below which SageMaker puts the models of an endpoint, one folder each.
const root = "/opt/ml/models"

// targetHeader names the archive of a model. The engine knows the model by it, and SageMaker by another
// name. Without it the model has one name.
const targetHeader = "X-Amzn-SageMaker-Target-Model"

// modelsPath is Triton's: the slash before a name may lack.
var modelsPath = regexp.MustCompile(`^/models/?([^/]+)?(/invoke)?$`)

// ensemblePlatform is how Triton finds the ensemble among the models of one folder.
var ensemblePlatform = regexp.MustCompile(`platform:\s*"ensemble"`)

// models are those that SageMaker has loaded.
type models struct {
	folder *regexp.Regexp // a folder that may be loaded, with its repository, and the model's folder in it

	mu    sync.Mutex
	paths map[string]string // of their repositories, by the names that SageMaker gives
}

func newModels(root string) *models {
	return &models{folder: regexp.MustCompile(`^(` + regexp.QuoteMeta(root) + `/[0-9A-Za-z._]+)/(model)/?([0-9A-Za-z._]+)?$`), paths: map[string]string{}}
}

// find returns the meaning of a request.
func (m *models) find(method, path, target string) rest.Call {
	target = url.PathEscape(target) // of an archive in a folder, such as team-a/bert.tar.gz, one name
	parts := modelsPath.FindStringSubmatch(path)
	if parts == nil {
		return rest.Call{Status: http.StatusBadRequest}
	}
	name, isInvoke := parts[1], parts[2] != ""
	call := call{models: m, name: name, target: target}
	if target == "" {
		call.target = name
	}
	switch {
	case method == http.MethodGet && name == "":
		call.serve = call.list
	case method == http.MethodGet:
		call.serve = call.describe
	case method == http.MethodPost && isInvoke && m.path(name) == "":
		return rest.Call{Status: http.StatusNotFound}
	case method == http.MethodPost && isInvoke:
		return rest.Call{Target: "/v2/models/" + call.target + "/infer", Failed: failures{}}
	case method == http.MethodPost:
		call.target = target // the body has the name
		call.serve = call.load
	case method == http.MethodDelete:
		call.serve = call.unload
	default:
		return rest.Call{Status: http.StatusBadRequest}
	}
	return rest.Call{Own: &call, Method: http.MethodPost}
}

// path returns the repository of a loaded model; "": it is not loaded.
func (m *models) path(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.paths[name]
}

// call is a request for the models of an endpoint. It implements rest.Own.
type call struct {
	models *models
	name   string // by which SageMaker knows the model
	target string // by which the engine knows it
	serve  func(ctx context.Context, s *engine.Server, body []byte) rest.Answer
}

// Category implements rest.Own.
func (*call) Category() api.Category { return api.CategoryModelRepository }

// Serve implements rest.Own.
func (c *call) Serve(ctx context.Context, s *engine.Server, body []byte) rest.Answer {
	return c.serve(ctx, s, body)
}

// model is how an answer describes a model. As in Triton, one that is not ready is an empty object.
type model struct {
	Name string `json:"modelName,omitempty"`
	URL  string `json:"modelUrl,omitempty"`
}

func (c *call) list(_ context.Context, s *engine.Server, _ []byte) rest.Answer {
	c.models.mu.Lock()
	paths := maps.Clone(c.models.paths)
	c.models.mu.Unlock()
	all := []model{}
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		if s.ModelReady(name, 1) == nil {
			all = append(all, model{name, paths[name]})
		} else {
			all = append(all, model{})
		}
	}
	return answer(map[string][]model{"models": all})
}

func (c *call) describe(context.Context, *engine.Server, []byte) rest.Answer {
	path := c.models.path(c.name)
	if path == "" {
		return rest.Answer{Status: http.StatusNotFound}
	}
	return answer(model{c.name, path})
}

func answer(value any) rest.Answer {
	text, err := json.Marshal(value)
	return rest.Answer{Status: http.StatusOK, Body: text, Err: err}
}

// load loads the model of a folder. Its body has the model's name and the folder, as SageMaker unpacked
// it.
func (c *call) load(ctx context.Context, s *engine.Server, body []byte) rest.Answer {
	name, url, err := readLoad(body)
	if err != nil {
		return refused(err)
	}
	if c.target == "" {
		c.target = name
	}
	repository, folder, err := c.models.locate(url)
	if err != nil {
		return refused(err)
	}
	if err := s.Register(repository, map[string]string{c.target: folder}); err != nil {
		return refused(err)
	}
	if err := s.Load(ctx, c.target, engine.Override{}); err != nil {
		_ = s.Unregister(repository) // it was registered above
		return refused(err)
	}
	c.models.mu.Lock()
	defer c.models.mu.Unlock()
	c.models.paths[name] = repository
	return rest.Answer{Status: http.StatusOK}
}

// readLoad reads the body of a load request. Texts are Triton's.
func readLoad(body []byte) (name, url string, err error) {
	if len(body) == 0 {
		return "", "", nil
	}
	d := document.Empty()
	if err := d.Parse(body); err != nil {
		return "", "", err
	}
	for _, field := range []struct {
		name string
		to   *string
	}{{"model_name", &name}, {"url", &url}} {
		if i := d.Find(0, field.name); i != document.None {
			text, err := d.Text(i)
			if err != nil {
				return "", "", err
			}
			*field.to = string(text)
		}
	}
	return name, url, nil
}

// locate returns the repository and the folder of a model. If the folder that a request names has a
// configuration, it is the model. Otherwise it is a repository: of several models in it, the ensemble is
// meant.
func (m *models) locate(url string) (repository, folder string, err error) {
	path := filepath.Clean(url)
	parts := m.folder.FindStringSubmatch(path)
	if parts == nil {
		return "", "", fault.Errorf(fault.InvalidArgument, "Invalid \"url\" '%s': expected a path of the form %s/<hash>/model[/<subdir>]", url, root)
	}
	if isThere(filepath.Join(path, "config.pbtxt")) {
		return parts[1], parts[2], nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", "", fault.Errorf(fault.InvalidArgument, "failed to register '%s', repository not found", path)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		folder = e.Name()
		if isEnsemble(filepath.Join(path, folder, "config.pbtxt")) {
			break
		}
	}
	return path, folder, nil
}

// maxConfig bounds the configurations in which locate looks for an ensemble.
const maxConfig = 1 << 20

func isEnsemble(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxConfig {
		return false
	}
	text, err := os.ReadFile(path)
	return err == nil && ensemblePlatform.Match(text)
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// How long SageMaker waits for an unload is 360 s, and Triton's answer comes before.
const (
	unloadTime = 350 * time.Second
	unloadPoll = 20 * time.Millisecond
)

// unload unloads a model, and what was loaded for it alone. It waits until the memory is free.
func (c *call) unload(_ context.Context, s *engine.Server, _ []byte) rest.Answer {
	repository := c.models.path(c.name)
	if repository == "" {
		return rest.Answer{Status: http.StatusNotFound}
	}
	if err := s.UnloadDependents(c.target); err != nil {
		return refused(err)
	}
	for end := time.Now().Add(unloadTime); isLeaving(s, c.target) && time.Now().Before(end); {
		time.Sleep(unloadPoll)
	}
	c.models.mu.Lock()
	delete(c.models.paths, c.name)
	c.models.mu.Unlock()
	if err := s.Unregister(repository); err != nil {
		return refused(err)
	}
	return rest.Answer{Status: http.StatusOK}
}

// isLeaving reports whether a version of a model is being freed.
func isLeaving(s *engine.Server, name string) bool {
	index, err := s.Index(false)
	return err == nil && slices.ContainsFunc(index, func(e api.IndexEntry) bool { return e.Name == name && e.State == api.StateUnloading })
}

// refused returns the answer to a request that failed.
func refused(err error) rest.Answer {
	status := failures{}.Status([]byte(fault.TextOf(err)))
	if fault.CodeOf(err) == fault.AlreadyExists {
		status = http.StatusConflict
	}
	return rest.Answer{Status: status, Err: err}
}

// failures implements rest.Statuses: SageMaker unloads other models and tries again if a model answers
// that memory is short.
type failures struct{}

// memoryTexts are parts of the texts from which Triton concludes that memory is short.
var memoryTexts = []string{
	"Out of memory", "Out Of Memory", "out of memory", "CUDA_OUT_OF_MEMORY", "MemoryError", "OutOfMemory", "OOM", "Failed to allocate memory",
	"failed to allocate memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUBLAS_STATUS_NOT_INITIALIZED", "CUDNN_STATUS_NOT_INITIALIZED", "No space left on device",
}

// Status implements rest.Statuses.
func (failures) Status(body []byte) int {
	text := string(body)
	if slices.ContainsFunc(memoryTexts, func(part string) bool { return strings.Contains(text, part) }) {
		return http.StatusInsufficientStorage
	}
	return http.StatusBadRequest
}
