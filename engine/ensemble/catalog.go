package ensemble

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"tuner/model/modelconfig"
)

// Server loads and unloads single models for a Catalog. Its methods are safe for concurrent use.
type Server interface {
	// Config reads a model's configuration; nil: there is no such model.
	Config(name string) *modelconfig.Config
	// Step finds the model that a step of an ensemble means by a name. "": no model, or several.
	// others are further models: if one of them comes, the step may mean another one.
	Step(ensemble, model string) (name string, others []string)
	// Load loads a model. again: also if exactly this model serves. changed: other versions serve
	// now. The error of an ensemble that does not fit its models is a Refused.
	Load(ctx context.Context, name string, asked, again bool) (changed bool, err error)
	// Drop takes a model out of service.
	Drop(name string)
	// Serves reports whether any version of a model is ready.
	Serves(name string) bool
	// Failed reports the error of an ensemble that was loaded again because of its models.
	Failed(name string, err error)
}

// Catalog knows which ensembles consist of which models. The zero value knows none. It is safe for
// concurrent use.
type Catalog struct {
	mu sync.Mutex
	// by name: the models of each ensemble that was loaded, or could not be because of its models
	parts map[string]parts
	// models that were loaded for an ensemble alone
	implicit map[string]bool
}

// parts are the models of an ensemble.
type parts struct {
	steps   []string // that it consists of
	others  []string // that it may consist of when they come
	missing []string // names of its configuration that stand for no model, or for several
}

// Request says which models to load.
type Request struct {
	Names  []string
	Beside []string // models that are loaded too, although nobody asks for them by name
}

// Load loads models, before them all that they consist of, and after them the ensembles that consist
// of what has changed. It returns the errors by name.
func (c *Catalog) Load(ctx context.Context, r Request, limit int, s Server) map[string]error {
	l := &loading{catalog: c, server: s, names: r.Names, parts: map[string]parts{}}
	failed := load(ctx, slices.Concat(r.Names, r.Beside), limit, l)
	c.follow(ctx, l, limit, s)
	return failed
}

// follow loads the ensembles again that are affected by a load, each once, however many ways lead to
// it from what has changed. Ensembles of which each consists of all before it have 2^n ways.
func (c *Catalog) follow(ctx context.Context, l *loading, limit int, s Server) {
	seen, changed := l.parts, l.changed
	for names := c.affected(changed, seen); len(names) > 0; names = c.affected(changed, seen) {
		next := &loading{catalog: c, server: s, names: names, again: true, parts: map[string]parts{}}
		failed := load(ctx, names, limit, next)
		for _, name := range names {
			if err := failed[name]; err != nil {
				s.Failed(name, err)
			}
		}
		maps.Copy(seen, next.parts)
		changed = next.changed
	}
}

// affected lists the ensembles that consist of any of the models, or may do so now, and those that
// consist of these, without those among seen.
func (c *Catalog) affected(models []string, seen map[string]parts) (names []string) {
	found := map[string]bool{}
	for below := models; len(below) > 0; {
		above := c.with(below, func(name string, p parts) []string {
			if _, done := seen[name]; done || found[name] {
				return nil
			}
			return slices.Concat(p.steps, p.others)
		})
		for _, name := range above {
			found[name] = true
		}
		names = append(names, above...)
		below = above
	}
	return names
}

// with lists the ensembles for which any of the models is among some of their parts.
func (c *Catalog) with(models []string, some func(name string, p parts) []string) (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, p := range c.parts {
		among := some(name, p)
		if slices.ContainsFunc(models, func(m string) bool { return slices.Contains(among, m) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// consisting lists the ensembles that consist of a model.
func (c *Catalog) consisting(model string) []string {
	return c.with([]string{model}, func(_ string, p parts) []string { return p.steps })
}

// Unloaded tells that a model was unloaded. The ensembles that consist of it, and those that consist
// of these, leave service with it, and come back with it.
func (c *Catalog) Unloaded(name string, s Server) {
	c.mu.Lock()
	delete(c.parts, name)
	delete(c.implicit, name)
	c.mu.Unlock()
	c.isolate(name, s)
}

func (c *Catalog) isolate(name string, s Server) {
	for _, outer := range c.consisting(name) {
		if s.Serves(outer) {
			s.Drop(outer)
			c.isolate(outer, s)
		}
	}
}

// Parts lists the models of an ensemble.
func (c *Catalog) Parts(name string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(c.parts[name].steps)))
}

// IsLeft reports whether a model was loaded for ensembles alone, of which none is left.
func (c *Catalog) IsLeft(name string) bool {
	c.mu.Lock()
	isImplicit := c.implicit[name]
	c.mu.Unlock()
	return isImplicit && len(c.consisting(name)) == 0
}

// loaded notes that a model was loaded, or waits for its models.
func (c *Catalog) loaded(name string, p parts, asked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parts == nil {
		c.parts, c.implicit = map[string]parts{}, map[string]bool{}
	}
	if _, known := c.implicit[name]; asked || !known {
		c.implicit[name] = !asked
	}
	if len(p.steps)+len(p.missing) > 0 {
		c.parts[name] = p
	} else {
		delete(c.parts, name)
	}
}

// loading is one call of Load.
type loading struct {
	catalog *Catalog
	server  Server
	names   []string
	again   bool // also models that serve already, and nothing that they consist of

	mu      sync.Mutex
	parts   map[string]parts // of each model that was looked at
	changed []string         // models of which other versions serve now
}

// Steps implements repository.
func (l *loading) Steps(name string) []string { return l.partsOf(name).steps }

// Missing implements repository.
func (l *loading) Missing(name string) []string { return l.partsOf(name).missing }

func (l *loading) partsOf(name string) parts {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, known := l.parts[name]
	if known {
		return p
	}
	for _, step := range l.server.Config(name).GetEnsembleScheduling().GetStep() {
		id, others := l.server.Step(name, step.GetModelName())
		if id != "" {
			p.steps = append(p.steps, id)
		} else if !slices.Contains(p.missing, step.GetModelName()) {
			p.missing = append(p.missing, step.GetModelName())
		}
		p.others = append(p.others, others...)
	}
	slices.Sort(p.missing)
	l.parts[name] = p
	return p
}

// Serves implements repository.
func (l *loading) Serves(name string) bool { return l.server.Serves(name) }

// Load implements repository.
func (l *loading) Load(ctx context.Context, name string) error {
	asked := slices.Contains(l.names, name)
	if l.again && !asked {
		return nil // as in Triton, an ensemble that is checked again takes its models as they are
	}
	changed, err := l.server.Load(ctx, name, asked, l.again)
	var refused *Refused
	if errors.As(err, &refused) {
		return l.Refuse(name, refused.Why)
	}
	if err == nil {
		parts := l.partsOf(name)
		l.catalog.loaded(name, parts, asked)
		for _, step := range parts.steps {
			if !l.server.Serves(step) { // unloaded before the catalog knew of this ensemble
				l.catalog.isolate(step, l.server)
			}
		}
	}
	if changed {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changed = append(l.changed, name)
	}
	return err
}

// Refuse implements repository. As in Triton, an ensemble that does not fit its models any more
// serves no longer.
func (l *loading) Refuse(name string, why error) error {
	l.catalog.loaded(name, l.partsOf(name), slices.Contains(l.names, name))
	l.server.Drop(name)
	return &Refused{Why: why}
}
