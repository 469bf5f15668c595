package engine

import (
	"context"
	"errors"
	"maps"
	"time"

	"tuner/engine/fault"
	"tuner/engine/repository"
	"tuner/engine/served"
)

// patience bounds the wait for a load in progress. An unload, another load of the same model, and
// the end of the server wait for it. After that the load is given up and its result discarded,
// since a backend that makes a session cannot be interrupted.
const patience = 5 * time.Second

// Reasons to give up a load.
var (
	errUnloaded = errors.New("the model was unloaded meanwhile")
	errStopping = errors.New("the server is stopping")
)

// attempt is a load in progress.
type attempt struct {
	name     string
	entry    *entry
	isUpload bool // the load request brought the files
	// the model is loaded also if exactly this one serves
	isRepeated bool
	before     map[int64]*version // the versions of the model before the load
	made       []*served.Pool     // discarded if the load fails
	given      <-chan struct{}    // closed when the load was given up
	giveUp     context.CancelCauseFunc
}

// loadOne loads a model. It returns when the model is ready, when the load has failed, or when it is
// given up. The models of an ensemble must have been loaded. again: also if exactly this model serves.
func (s *Server) loadOne(ctx context.Context, name string, o Override, again bool) error {
	s.sweep()
	a, ctx, err := s.enter(ctx, name)
	if err != nil {
		return err
	}
	a.isUpload, a.isRepeated = len(o.Files) > 0, again
	done := make(chan error, 1)
	go func() {
		defer s.loading.Done()
		err := s.try(ctx, a, o)
		s.leave(a)
		done <- err
	}()
	select {
	case err := <-done:
		a.giveUp(nil) // frees the context
		return err
	case <-ctx.Done():
		return givenUp(ctx, name)
	}
}

func givenUp(ctx context.Context, name string) error {
	return fault.Errorf(fault.Unavailable, "load failed for model '%s': %v", name, context.Cause(ctx))
}

// enter finds or makes a model's entry. It begins a load of the model once no other one is in
// progress.
func (s *Server) enter(ctx context.Context, name string) (*attempt, context.Context, error) {
	for {
		e, err := s.entry(name)
		if err == nil {
			err = s.await(ctx, name, e)
		}
		if err != nil {
			return nil, nil, err
		}
		if a, ctx := s.begin(ctx, name, e); a != nil {
			return a, ctx, nil
		}
		<-e.turn // it was dropped, or the server began to stop, while we waited
	}
}

// entry finds or makes a model's entry.
func (s *Server) entry(name string) (*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.draining {
		return nil, fault.Errorf(fault.Unavailable, "Server is stopping")
	}
	e := s.entries[name]
	if e == nil {
		e = &entry{turn: make(chan struct{}, 1), versions: map[int64]*version{}}
		s.entries[name] = e
	}
	return e, nil
}

// await takes the turn to load a model. It waits for the load in progress, for a limited time if
// that one was given up.
func (s *Server) await(ctx context.Context, name string, e *entry) error {
	for {
		s.mu.RLock()
		isGivenUp := e.attempt != nil && isClosed(e.attempt.given)
		s.mu.RUnlock()
		select {
		case e.turn <- struct{}{}:
			return nil
		case <-time.After(patience):
			if isGivenUp {
				return fault.Errorf(fault.Unavailable, "failed to load '%s', an earlier load of it was given up and has not ended yet: try again later", name)
			}
		case <-ctx.Done():
			return givenUp(ctx, name)
		case <-s.ending:
			return fault.Errorf(fault.Unavailable, "Server is stopping")
		}
	}
}

// begin makes the attempt of an entry whose turn was taken. Its context ends when the attempt is
// given up. It returns nil if the entry no longer belongs to the model, or if the server is
// stopping.
func (s *Server) begin(ctx context.Context, name string, e *entry) (*attempt, context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[name] != e || s.closing || s.draining {
		return nil, nil
	}
	s.loading.Add(1)
	ctx, giveUp := context.WithCancelCause(ctx)
	e.attempt = &attempt{name: name, entry: e, before: maps.Clone(e.versions), given: ctx.Done(), giveUp: giveUp}
	return e.attempt, ctx
}

// leave ends an attempt, and lets the next one begin.
func (s *Server) leave(a *attempt) {
	hasFolder := s.hasFolder(a.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	a.entry.attempt = nil
	s.forget(a.name, a.entry, hasFolder)
	<-a.entry.turn
}

// stopLoads gives up all loads, and prevents new ones. The caller holds Server.mu.
func (s *Server) stopLoads() {
	if !isClosed(s.ending) {
		close(s.ending)
	}
	for _, e := range s.entries {
		if e.attempt != nil {
			e.attempt.giveUp(errStopping)
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// IsLoading reports whether a load has not ended. After Close, that is a load which the backend
// does not end. The resources of the backend must then stay until the process ends.
func (s *Server) IsLoading() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, e := range s.entries {
		if e.attempt != nil {
			return true
		}
	}
	return false
}

// awaitLoads waits for loads that were given up.
func (s *Server) awaitLoads() {
	ended := make(chan struct{})
	go func() {
		s.loading.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		s.options.Log.Warn("a load has not ended: it ends with the process")
	}
}

// forget drops the entry of a model if nothing is known of the model, or if it was unloaded and its
// folder is gone. The caller holds Server.mu.
func (s *Server) forget(name string, e *entry, hasFolder bool) {
	isDropped := s.entries[name] == e && e.attempt == nil && !e.hollow && e.isUnloaded()
	if isDropped && (len(e.versions) == 0 || !hasFolder) {
		delete(s.entries, name)
	}
}

// sweep drops the entries of unloaded models whose folders have gone since. It checks all entries
// whenever their number has doubled.
func (s *Server) sweep() {
	unloaded := s.unloadedEntries()
	if unloaded == nil {
		return
	}
	for name := range unloaded {
		if s.hasFolder(name) { // may take time on a network file system
			delete(unloaded, name)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, e := range unloaded {
		s.forget(name, e, false)
	}
	s.sweepAt = max(fewEntries, 2*len(s.entries))
}

// unloadedEntries returns the entries that a sweep must check, nil if it is too early for one.
func (s *Server) unloadedEntries() map[string]*entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.entries) < s.sweepAt {
		return nil
	}
	unloaded := map[string]*entry{}
	for name, e := range s.entries {
		if e.isUnloaded() {
			unloaded[name] = e
		}
	}
	return unloaded
}

// fewEntries is the number of entries up to which there is no sweep.
const fewEntries = 64

// hasFolder reports whether a model is in a repository.
func (s *Server) hasFolder(id string) bool {
	roots, name := s.locate(id)
	if repository.CheckName(name) != nil {
		return false
	}
	for _, root := range roots {
		if s.roots.Load().Has(root, name) {
			return true
		}
	}
	return false
}
