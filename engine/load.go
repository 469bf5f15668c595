package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tuner/engine/api"
	"tuner/engine/ensemble"
	"tuner/engine/fault"
	"tuner/engine/repository"
	"tuner/engine/served"
	"tuner/engine/statistics"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
)

// Load loads a model, or loads it again. A model that serves now keeps serving until its successor
// is ready, and finishes the requests it has accepted. Load returns when the model is ready. It
// works only in explicit mode.
func (s *Server) Load(ctx context.Context, name string, o Override) error {
	if err := s.controllable(); err != nil {
		return err
	}
	var failed []error
	for _, id := range s.identities(name, o) {
		failed = append(failed, s.load(ctx, id, o))
	}
	if len(failed) == 1 {
		return failed[0]
	}
	return invalidAll(failed)
}

// controllable refuses load and unload requests, unless the server is in explicit mode.
func (s *Server) controllable() error {
	if !s.options.Explicit {
		return fault.Errorf(fault.Unavailable, "explicit model load / unload is not allowed if polling is enabled")
	}
	return nil
}

// try makes a load, from the configuration to the serving versions.
func (s *Server) try(ctx context.Context, a *attempt, o Override) error {
	src, err := s.read(ctx, a, o)
	if err != nil {
		return err
	}
	if src.temp != nil {
		defer src.temp.Release() // the pools hold it now
	}
	if !a.isRepeated && (s.sourceOf(a.name).keeps(src) || s.isServing(a.entry, src)) {
		return nil
	}
	for _, why := range src.Ignored {
		s.options.Log.Warn(why, "model", src.Name)
	}
	s.mu.RLock()
	err = s.checkSteps(src, a.name)
	s.mu.RUnlock()
	if err != nil {
		return &ensemble.Refused{Why: err}
	}
	versions, err := s.build(ctx, a, src)
	if err == nil {
		err = s.publish(ctx, a, src, versions)
	}
	if err == nil {
		return nil
	}
	for _, p := range a.made {
		err = errors.Join(err, p.Retire())
	}
	if ctx.Err() != nil {
		return errors.Join(givenUp(ctx, a.name), err)
	}
	if errors.As(err, new(*ensemble.Refused)) {
		return err
	}
	return s.loadError(ctx, a, versions, err)
}

// read gets a model's configuration from the repository or the request. It fills in the values that
// do not depend on the model file.
func (s *Server) read(ctx context.Context, a *attempt, o Override) (*source, error) {
	src, err := s.poll(a.name, o)
	if err != nil {
		return nil, s.pollError(a.name, err)
	}
	c, err := s.complete(src, nil)
	if err == nil {
		src.Config = c
		return src, nil
	}
	if src.temp != nil {
		src.temp.Release()
	}
	if errors.As(err, new(*modelconfig.PollError)) {
		return nil, s.pollError(a.name, err)
	}
	return nil, s.loadError(ctx, a, s.unavailable(src, err), err)
}

// poll finds a model by its identity.
func (s *Server) poll(id string, o Override) (*source, error) {
	roots, name := s.locate(id)
	if err := repository.CheckName(name); err != nil {
		return nil, err
	}
	if o.Config != "" || len(o.Files) > 0 {
		src, err := o.source(s.roots.Load(), roots, &s.uploads, name)
		if err == nil {
			src.namespace = s.namespace(id)
		}
		return src, err
	}
	found, err := s.roots.Load().Find(roots, name)
	if err != nil {
		return nil, err
	}
	err = found.ReadConfig(s.options.ConfigName, s.options.DisableAutoComplete)
	if found.IsRenamed && err == nil {
		found.Config.Name = name
	}
	return &source{Model: found, namespace: s.namespace(id)}, err
}

// pollError returns the error of a load request for something that is not a model. As in Triton,
// only the log has the reason, except for cases that Triton does not refuse.
func (s *Server) pollError(name string, why error) error {
	if errors.As(why, new(*fault.Error)) {
		return why
	}
	s.options.Log.Error("poll failed for model directory", "model", name, "error", why)
	return unpolled(name)
}

func unpolled(name string) error {
	return fault.Errorf(fault.Internal, "failed to load '%s', failed to poll from model repository", name)
}

// complete fills in a configuration. If io is nil, it fills in only values that do not depend on
// the model file.
func (s *Server) complete(src *source, io *modelconfig.ModelIO) (*modelconfig.Config, error) {
	c, err := modelconfig.Complete(src.Config, modelconfig.CompleteOptions{
		DirName: src.Name, HasModelFile: src.HasModelFile(), IO: io,
		DefaultMaxBatchSize: s.options.DefaultMaxBatchSize, GPUs: s.options.GPUs, DisableAutoComplete: s.options.DisableAutoComplete,
	})
	if err != nil {
		return nil, err
	}
	if c.GetEnsembleScheduling() != nil {
		if _, err := ensemble.New(c); err != nil {
			return nil, &modelconfig.PollError{Reason: err}
		}
	}
	return c, modelconfig.RefuseUnsupported(c)
}

// isServing reports whether exactly this model is loaded already. A model with an override is
// always loaded again.
func (s *Server) isServing(e *entry, src *source) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	old := e.source
	if old == nil || old.override || src.override || old.Text != src.Text || !slices.Equal(old.Versions, src.Versions) {
		return false
	}
	for _, n := range modelrepo.Served(src.Versions, src.Config.GetVersionPolicy()) {
		stamp, err := src.Stamp(n)
		if v := e.versions[n]; err != nil || v == nil || v.state != api.StateReady || v.stamp != stamp {
			return false
		}
	}
	return true
}

// build makes all versions of a model ready. If one fails, none may be kept. The result has the
// state of each.
func (s *Server) build(ctx context.Context, a *attempt, src *source) (map[int64]*version, error) {
	numbers := modelrepo.Served(src.Versions, src.Config.GetVersionPolicy())
	if len(numbers) == 0 {
		return nil, fault.Errorf(fault.InvalidArgument, "at least one version must be available under the version policy of model '%s'", src.Name)
	}
	s.announceLoading(ctx, a.entry, numbers)
	versions := map[int64]*version{}
	var failed error
	for _, n := range numbers {
		begin := time.Now()
		stamp, unknown := src.Stamp(n)
		v := &version{state: api.StateReady, stamp: stamp}
		var err error
		old, unchanged := s.serving(a.entry, n, stamp)
		if unchanged && unknown == nil {
			v.model, err = s.reuse(src, old)
		}
		if v.model == nil && err == nil {
			if src.isEnsemble() {
				v.model, err = s.newEnsemble(src, a.name, n, old)
			} else {
				v.model, err = s.tryModel(ctx, src, n, old, unchanged)
			}
			if err == nil {
				a.made = append(a.made, v.model.Pool)
			}
		}
		if err != nil {
			v.state, v.reason = api.StateUnavailable, fault.Reason(err)
			failed = errors.Join(failed, err)
		} else {
			v.model.LoadDuration = time.Since(begin)
		}
		versions[n] = v
	}
	if failed == nil {
		return versions, nil
	}
	for _, v := range versions {
		if v.model != nil {
			v.model, v.state, v.reason = nil, api.StateUnavailable, "another version of the model failed to load"
		}
	}
	return versions, failed
}

// announceLoading marks the versions in the index as loading, unless they serve meanwhile.
func (s *Server) announceLoading(ctx context.Context, e *entry, numbers []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return // it is unloaded
	}
	for _, n := range numbers {
		if v := e.versions[n]; v == nil || v.model == nil {
			e.versions[n] = &version{state: api.StateLoading}
		}
	}
}

func (e *entry) uses(p *served.Pool) bool {
	for _, v := range e.versions {
		if v.model != nil && v.model.Pool == p {
			return true
		}
	}
	return false
}

// serving returns the model that serves a version, or nil. unchanged: it was loaded from the same
// files.
func (s *Server) serving(e *entry, number int64, stamp string) (old *served.Model, unchanged bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if v := e.versions[number]; v != nil && v.state == api.StateReady {
		return v.model, v.stamp == stamp
	}
	return nil, false
}

// reuse makes a model on the sessions that serve now. This is possible if only the batching of
// requests has changed, and takes milliseconds instead of making new sessions. Otherwise it returns
// nil. The warm-up is not repeated, since these sessions have had the same.
func (s *Server) reuse(src *source, old *served.Model) (*served.Model, error) {
	if src.isEnsemble() || old.IsEnsemble() {
		return nil, nil
	}
	io := old.Pool.IO()
	c, err := s.finish(src, &io)
	if err != nil || !modelconfig.SameButBatching(old.Config, c) {
		return nil, err
	}
	return old.With(c, inherit(old, c)), nil
}

// inherit makes the counters of a model of configuration c that replaces old. They are the same
// ones in the cases in which Triton would change only the instances.
func inherit(old *served.Model, c *modelconfig.Config) *statistics.Statistics {
	if modelconfig.SameButInstances(old.Config, c) {
		return old.Stats
	}
	return old.Stats.Successor()
}

// finish completes a configuration from the model itself, and checks it against the model.
func (s *Server) finish(src *source, io *modelconfig.ModelIO) (*modelconfig.Config, error) {
	c, err := s.complete(src, io)
	if err == nil && modelconfig.HasFile(c) {
		err = modelconfig.CheckModel(c, *io)
	}
	if err != nil {
		return nil, invalid(err)
	}
	return c, nil
}

// invalid sets the class of an error of package modelconfig.
func invalid(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	if errors.As(err, new(*modelconfig.InternalError)) {
		return fault.Errorf(fault.Internal, "%v", err)
	}
	return fault.Errorf(fault.InvalidArgument, "%v", err)
}

// publish replaces the old versions by new ones, unless the load was given up. The old ones are
// freed when their last request has been answered.
func (s *Server) publish(ctx context.Context, a *attempt, src *source, versions map[int64]*version) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.checkSteps(src, a.name); err != nil { // its models may have gone meanwhile
		return &ensemble.Refused{Why: err}
	}
	e := a.entry
	old := e.versions
	e.versions, e.source, e.hollow, e.dropped = versions, src, false, false
	for _, v := range versions {
		// it may serve the older configuration so far
		v.model.Pool.Reconfigure(v.model.Config)
		v.model.OpenAnswers(s.cache, s.options.Log)
		s.options.Log.Info("loaded model", "model", src.Name, "version", v.model.Version, "duration", v.model.LoadDuration)
	}
	for number, v := range old {
		if v.model != nil {
			v.model.CloseAnswers()
		}
		if versions[number] == nil {
			versions[number] = s.dismiss(v)
		} else if v.model != nil && !e.uses(v.model.Pool) {
			s.retire(v.model.Pool, nil)
		}
	}
	e.findNewest()
	return nil
}

// unavailable describes each version of a model that cannot be loaded, for a reason that does not
// depend on the version.
func (s *Server) unavailable(src *source, err error) map[int64]*version {
	versions := map[int64]*version{}
	for _, n := range modelrepo.Served(src.Versions, src.Config.GetVersionPolicy()) {
		versions[n] = &version{state: api.StateUnavailable, reason: fault.Reason(invalid(err))}
	}
	return versions
}

// loadError records why a load failed, unless an older version still serves. It returns the error
// for the client.
func (s *Server) loadError(ctx context.Context, a *attempt, versions map[int64]*version, err error) error {
	var text strings.Builder
	fmt.Fprintf(&text, "load failed for model '%s': ", a.name)
	for _, n := range slices.Sorted(maps.Keys(versions)) {
		fmt.Fprintf(&text, "version %d is at UNAVAILABLE state: %s;", n, versions[n].reason)
	}
	if len(versions) == 0 {
		text.WriteString(err.Error())
	}
	text.WriteString("\n")
	s.record(ctx, a, versions)
	return &fault.Error{Code: fault.InvalidArgument, Text: text.String()}
}

// record writes the result of a load for each version to the index. If the request brought the
// files, they are gone now, so that the earlier state comes back where the load has announced itself. Other
// versions may have left service meanwhile. If the load was given up, the state was written then.
func (s *Server) record(ctx context.Context, a *attempt, versions map[int64]*version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := a.entry
	switch {
	case ctx.Err() != nil:
		return
	case a.isUpload:
		for n, v := range e.versions {
			if v.state != api.StateLoading {
				continue
			}
			if was := a.before[n]; was != nil {
				e.versions[n] = was
			} else {
				delete(e.versions, n)
			}
		}
		return
	}
	e.hollow = len(versions) == 0 && len(e.versions) == 0
	for n, v := range versions {
		if was := e.versions[n]; was == nil || was.model == nil {
			e.versions[n] = v
		}
	}
}

// Unload takes a model out of service. The requests that it has accepted are answered before it is
// freed. Unload waits for a load of the model to end, and gives it up if that takes long.
func (s *Server) Unload(name string) error {
	if err := s.controllable(); err != nil {
		return err
	}
	for _, id := range s.known(name) {
		s.Withdraw(id)
	}
	return nil
}

// Withdraw is Unload by identity, for whoever follows the repositories. It works in any mode.
func (s *Server) Withdraw(id string) {
	s.mu.RLock()
	e := s.entries[id]
	s.mu.RUnlock()
	if e == nil {
		return
	}
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-time.After(patience):
	}
	hasFolder := s.hasFolder(id)
	s.mu.Lock()
	if e.attempt != nil {
		e.attempt.giveUp(errUnloaded)
	}
	s.unload(e)
	s.forget(id, e, hasFolder)
	s.mu.Unlock()
	s.ensembles.Unloaded(id, &loader{Server: s})
}

// unload takes all versions of a model out of service, and frees them in the background. The caller
// holds Server.mu.
func (s *Server) unload(e *entry) {
	e.source = nil
	e.hollow, e.dropped = false, false
	for n, v := range e.versions {
		e.versions[n] = s.dismiss(v)
	}
	e.findNewest()
}

// dismiss takes a version out of service and frees it in the background. It returns the version's
// new state. The caller holds Server.mu.
func (s *Server) dismiss(v *version) *version {
	switch {
	case v.state == api.StateUnloading: // unloaded by an earlier request, and not yet freed
		return v
	case v.model == nil:
		return &version{state: api.StateUnavailable, reason: unloadedReason}
	}
	v.model.CloseAnswers()
	gone := &version{state: api.StateUnloading}
	s.retire(v.model.Pool, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		gone.state, gone.reason = api.StateUnavailable, unloadedReason
	})
	return gone
}
