package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"tuner/engine/api"
	"tuner/engine/cache"
	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/engine/served"
	"tuner/engine/statistics"
	"tuner/model/modelconfig"
)

// Metadata describes the server.
func (s *Server) Metadata() api.ServerMetadata {
	extensions := []string{"classification", "sequence", api.ExtensionModelRepository, "model_repository(unload_dependents)", "schedule_policy", "model_configuration"}
	if s.options.SharedMemory { // CUDA's is listed by a Triton that is built without it, too
		extensions = append(extensions, "system_shared_memory", "cuda_shared_memory")
	}
	extensions = append(extensions, "binary_tensor_data", "parameters", api.ExtensionStatistics, "trace", "logging")
	return api.ServerMetadata{Name: s.options.ID, Version: s.options.Version, Extensions: extensions}
}

// Live reports whether the server has repositories. It has none if one was missing at the start.
func (s *Server) Live() bool { return len(s.options.Repositories) > 0 }

// Ready reports whether requests may be sent. The models to load at the start must have been
// loaded. With strict readiness, every known model must be ready, or unloaded on request.
func (s *Server) Ready() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closing || s.draining || !s.started {
		return false
	}
	if !s.options.StrictReadiness {
		return true
	}
	for _, e := range s.entries {
		if e.hollow {
			return false
		}
		for _, v := range e.versions {
			if v.state != api.StateReady && v.state != api.StateUnloading && v.reason != unloadedReason {
				return false
			}
		}
	}
	return true
}

// Closing reports whether the server is shutting down.
func (s *Server) Closing() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.closing || s.draining
}

// ModelReady returns nil if a model is ready. Version 0 is the newest.
func (s *Server) ModelReady(name string, version int64) error {
	_, err := s.model(name, version)
	return err
}

// ModelMetadata describes a model. Version 0 stands for all ready versions.
func (s *Server) ModelMetadata(name string, version int64) (api.ModelMetadata, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	m, err := s.find(name, version)
	if err != nil {
		return api.ModelMetadata{}, err
	}
	if version != 0 {
		return m.Metadata([]string{strconv.FormatInt(version, 10)}), nil
	}
	_, e, _ := s.resolve(name) // find found it
	var numbers []int64
	for n, v := range e.versions {
		if v.state == api.StateReady {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	var versions []string
	for _, n := range numbers {
		versions = append(versions, strconv.FormatInt(n, 10))
	}
	return m.Metadata(versions), nil
}

// ModelConfig returns the complete configuration of a model. The caller must not change it. Version
// 0 is the newest.
func (s *Server) ModelConfig(name string, version int64) (*modelconfig.Config, error) {
	m, err := s.model(name, version)
	if err != nil {
		return nil, err
	}
	return m.Config, nil
}

func (s *Server) model(name string, version int64) (*served.Model, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.find(name, version)
}

// Statistics returns the counters of a model. An empty name stands for all models, version 0 for
// all versions.
func (s *Server) Statistics(name string, version int64) (api.Statistics, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := api.Statistics{ModelStats: []api.ModelStatistics{}}
	if _, _, err := s.resolve(name); err != nil && s.options.Namespacing && name != "" {
		return out, fault.Errorf(fault.InvalidArgument, "requested model '%s' is not available", name)
	}
	for _, m := range s.readyModels() {
		if (name == "" || name == m.Name) && (version == 0 || version == m.Version) {
			out.ModelStats = append(out.ModelStats, m.Stats.SinceLoad(m.Name, m.Version))
		}
	}
	switch {
	case len(out.ModelStats) > 0 || name == "":
		return out, nil
	case version != 0 && len(s.knownLocked(name)) > 0:
		return out, fault.Errorf(fault.InvalidArgument, "requested model version is not available for model '%s'", name)
	}
	return out, fault.Errorf(fault.InvalidArgument, "requested model '%s' is not available", name)
}

// ModelMetrics holds the figures of a model for its metrics.
type ModelMetrics struct {
	// since the model was last unloaded: a reload does not reset them
	Statistics   api.ModelStatistics
	Failures     map[statistics.Failure]uint64
	Pending      int // requests that wait for an instance
	LoadDuration time.Duration
	IsCached     bool              // its configuration enables the response cache
	Namespace    string            // its repository; "": there are no namespaces
	Tags         map[string]string // metric_tags of its configuration
}

// Metrics returns the figures of all ready models, by name and version.
func (s *Server) Metrics() []ModelMetrics {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []ModelMetrics
	for _, m := range s.readyModels() {
		stats, failures := m.Stats.SinceUnload(m.Name, m.Version)
		out = append(out, ModelMetrics{stats, failures, m.Pool.Pending(), m.LoadDuration, m.Config.GetResponseCache().GetEnable(), m.Namespace, m.Config.GetMetricTags()})
	}
	return out
}

// readyModels lists the ready models, by name and version. The caller holds Server.mu.
func (s *Server) readyModels() []*served.Model {
	var out []*served.Model
	for _, e := range s.entries {
		for _, v := range e.versions {
			if v.state == api.StateReady {
				out = append(out, v.model)
			}
		}
	}
	slices.SortFunc(out, func(a, b *served.Model) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return out
}

// Index lists the models of the repositories with their states. onlyReady leaves out models that
// are not ready.
func (s *Server) Index(onlyReady bool) ([]api.IndexEntry, error) {
	s.listRemote(context.Background()) // it returns soon
	names, err := s.list()
	if err != nil {
		return nil, fault.Errorf(fault.Internal, "%v", err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	twice := repeated(names)
	for name, e := range s.entries {
		if !e.isUnloaded() { // it may have come with its load request, and be in no repository
			names = append(names, name)
		}
	}
	slices.Sort(names)
	out := []api.IndexEntry{}
	for _, id := range slices.Compact(names) {
		_, name := s.locate(id)
		e := s.entries[id]
		if twice[id] {
			if !onlyReady {
				out = append(out, api.IndexEntry{Name: name, State: api.StateUnavailable, Reason: "model appears in two or more repositories"})
			}
			continue
		}
		if e == nil || len(e.versions) == 0 {
			if !onlyReady && (e == nil || !e.hollow) { // Triton does not list these
				out = append(out, api.IndexEntry{Name: name})
			}
			continue
		}
		for _, n := range slices.Sorted(maps.Keys(e.versions)) {
			if v := e.versions[n]; !onlyReady || v.state == api.StateReady {
				out = append(out, api.IndexEntry{Name: name, Version: strconv.FormatInt(n, 10), State: v.state, Reason: v.reason})
			}
		}
	}
	return out, nil
}

// isUnloaded reports whether all versions were unloaded on request. The caller holds Server.mu.
func (e *entry) isUnloaded() bool {
	for _, v := range e.versions {
		if v.reason != unloadedReason {
			return false
		}
	}
	return true
}

// repeated returns the names that occur more than once in a sorted list.
func repeated(sorted []string) map[string]bool {
	out := map[string]bool{}
	for i, name := range sorted[:max(0, len(sorted)-1)] {
		if name == sorted[i+1] {
			out[name] = true
		}
	}
	return out
}

// RawInput makes the input of a request whose body is only the data of the model's single input. It
// has one row. At most one dimension may have any size; the amount of data sets it. A string is a
// single element.
func (s *Server) RawInput(name string, number int64, data []byte) (Tensor, error) {
	m, err := s.model(name, number)
	if err != nil {
		return Tensor{}, err
	}
	sig := m.Signature
	if len(sig.Inputs) != 1 {
		return Tensor{}, fault.Errorf(fault.InvalidArgument, "%s Raw request must only have 1 input (found 1) to be deduced but got %d inputs in '%s' model configuration", request.IDPrefix(""), len(sig.Inputs), name)
	}
	return sig.RawInput(data)
}

// CacheStatistics returns the figures of the response cache. It is false for a server without one.
func (s *Server) CacheStatistics() (cache.Statistics, bool) {
	if s.cache == nil {
		return cache.Statistics{}, false
	}
	return s.cache.Statistics(), true
}
