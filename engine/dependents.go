package engine

import (
	"context"
	"errors"
	"maps"
	"slices"

	"tuner/engine/ensemble"
	"tuner/engine/fault"
	"tuner/model/modelconfig"
)

// load loads a model, and before it the models that it consists of. Ensembles that consist of what
// has changed are checked again, or loaded if they waited for it.
func (s *Server) load(ctx context.Context, name string, o Override) error {
	failed, unfetched := s.loadAll(ctx, []string{name}, map[string]Override{name: o})
	if err := failed[name]; err != nil {
		return err
	}
	// A model of it serves as before.
	for _, part := range slices.Sorted(maps.Keys(failed)) {
		switch err := failed[part]; {
		case unfetched[part] != nil:
			return err
		case fault.CodeOf(err) == fault.Internal: // Triton does not call this a success
			return unpolled(name)
		}
	}
	return nil
}

// loadAll loads models in the order in which they depend on each other. It returns their errors, and which
// of them could not be fetched.
func (s *Server) loadAll(ctx context.Context, names []string, overrides map[string]Override) (failed, unfetched map[string]error) {
	loadable, unfetched := s.fetch(ctx, names, overrides)
	l := &loader{s, overrides, unfetched}
	failed = s.ensembles.Load(ctx, ensemble.Request{Names: loadable, Beside: l.beside(loadable)}, s.options.LoadThreads, l)
	for name, err := range failed {
		failed[name] = refused(name, err)
	}
	for _, name := range names {
		if err := unfetched[name]; err != nil {
			failed[name] = err
		}
	}
	return failed, unfetched
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
	unfetched map[string]error // why models could not be fetched
}

// Config implements ensemble.Server.
func (l *loader) Config(name string) *modelconfig.Config {
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

// Load implements ensemble.Server. As in Triton, a model that is loaded for an ensemble keeps the
// configuration of an earlier load request, and loses its files.
func (l *loader) Load(ctx context.Context, name string, asked, again bool) (changed bool, err error) {
	before := l.sourceOf(name)
	if !asked && before != nil && before.override && before.temp == nil {
		return false, nil
	}
	if err := l.unfetched[name]; err != nil && !again {
		return false, err
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
		e.dropped = true
	}
}

// Serves implements ensemble.Server.
func (l *loader) Serves(id string) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return !l.closing && l.serves(id)
}

// Failed implements ensemble.Server. The client has asked for another model.
func (l *loader) Failed(name string, err error) {
	l.options.Log.Error("cannot load ensemble", "model", name, "error", refused(name, err))
}

// UnloadDependents unloads a model, and if it is an ensemble, those of its models that were loaded
// for it alone.
func (s *Server) UnloadDependents(name string) error {
	if err := s.controllable(); err != nil {
		return err
	}
	for _, id := range s.known(name) {
		s.withdrawDependents(id)
	}
	return nil
}

func (s *Server) withdrawDependents(id string) {
	parts := s.ensembles.Parts(id)
	s.Withdraw(id)
	for _, part := range parts {
		if s.ensembles.IsLeft(part) {
			s.withdrawDependents(part)
		}
	}
}
