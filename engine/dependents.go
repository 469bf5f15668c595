package engine

import (
	"context"
	"errors"

	"tuner/engine/ensemble"
	"tuner/engine/fault"
	"tuner/model/modelconfig"
)

// load loads a model, and before it the models that it consists of. Ensembles that consist of what
// has changed are checked again, or loaded if they waited for it.
func (s *Server) load(ctx context.Context, name string, o Override) error {
	return s.loadAll(ctx, []string{name}, map[string]Override{name: o})[name]
}

// loadAll loads models in the order in which they depend on each other. It returns their errors.
func (s *Server) loadAll(ctx context.Context, names []string, overrides map[string]Override) map[string]error {
	names, unfetched := s.fetch(ctx, names, overrides)
	failed := s.ensembles.Load(ctx, names, s.options.LoadThreads, false, &loader{s, overrides})
	for name, err := range failed {
		failed[name] = refused(name, err)
	}
	for name, err := range unfetched {
		failed[name] = err
	}
	return failed
}

// refused returns the error for the client of an ensemble that does not fit its models.
func refused(name string, err error) error {
	var why *ensemble.Refused
	if errors.As(err, &why) {
		return fault.Errorf(fault.InvalidArgument, "load failed for model '%s': %v\n", name, why.Why)
	}
	return err
}

// loader loads single models for the catalog of ensembles. It implements ensemble.Server.
type loader struct {
	*Server
	overrides map[string]Override
}

// Config implements ensemble.Server.
func (l *loader) Config(name string) *modelconfig.Config {
	if l.options.Namespacing {
		return nil // ensembles are refused then, and nothing depends on another model
	}
	if text := l.overrides[name].Config; text != "" {
		c, _ := modelconfig.ParseJSON([]byte(text)) // the load itself reports the error
		return c
	}
	src, err := l.poll(name, Override{})
	if err != nil {
		return nil
	}
	if _, err := l.complete(src, nil); errors.As(err, new(*modelconfig.PollError)) {
		return nil
	}
	return src.Config
}

// Load implements ensemble.Server.
func (l *loader) Load(ctx context.Context, name string, asked, again bool) (changed bool, err error) {
	before := l.sourceOf(name)
	if !asked && before != nil && before.override {
		return false, nil // the override of a load request stays
	}
	err = l.loadOne(ctx, name, l.overrides[name], again)
	return l.sourceOf(name) != before, err
}

// sourceOf returns the source of the versions that serve; nil: none.
func (s *Server) sourceOf(name string) *source {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if e := s.entries[name]; e != nil {
		return e.source
	}
	return nil
}

// Drop implements ensemble.Server.
func (l *loader) Drop(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[name]; e != nil {
		l.unload(e)
	}
}

// Serves implements ensemble.Server.
func (l *loader) Serves(name string) bool { return l.ModelReady(name, 0) == nil }

// Failed implements ensemble.Server. The client has asked for another model.
func (l *loader) Failed(name string, err error) {
	l.options.Log.Error("cannot load ensemble", "model", name, "error", refused(name, err))
}

// UnloadDependents unloads a model, and if it is an ensemble, those of its models that were loaded
// for it alone.
func (s *Server) UnloadDependents(name string) error {
	parts := s.ensembles.Parts(name)
	if err := s.Unload(name); err != nil {
		return err
	}
	for _, part := range parts {
		if !s.ensembles.IsLeft(part) {
			continue
		}
		if err := s.UnloadDependents(part); err != nil {
			return err
		}
	}
	return nil
}
