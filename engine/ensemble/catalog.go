package ensemble

import (
	"context"
	"errors"
	"slices"
	"sync"

	"tuner/model/modelconfig"
)

// Server loads and unloads single models for a Catalog. Its methods are safe for concurrent use.
type Server interface {
	// Config reads a model's configuration; nil: there is no such model.
	Config(name string) *modelconfig.Config
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
	// by name: the models of each ensemble that was loaded, or could not be because of its models. It
	// is loaded again when one of these comes.
	steps map[string][]string
	// models that were loaded for an ensemble alone
	implicit map[string]bool
}

// Load loads models, before them all that they consist of, and after them the ensembles that consist
// of what has changed. again: also models that serve already, but not those that they consist of. It
// returns the errors by name.
func (c *Catalog) Load(ctx context.Context, names []string, limit int, again bool, s Server) map[string]error {
	l := &loading{catalog: c, server: s, names: names, again: again, steps: map[string][]string{}}
	failed := load(ctx, names, limit, l)
	for _, name := range c.affected(l.changed, l.steps) {
		if err := c.Load(ctx, []string{name}, limit, true, s)[name]; err != nil {
			s.Failed(name, err)
		}
	}
	return failed
}

// affected lists the ensembles that consist of any of the models, without those among seen.
func (c *Catalog) affected(models []string, seen map[string][]string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for name, steps := range c.steps {
		if _, done := seen[name]; !done && slices.ContainsFunc(models, func(m string) bool { return slices.Contains(steps, m) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Unloaded tells that a model was unloaded. The ensembles that consist of it, and those that consist
// of these, leave service with it, and come back with it.
func (c *Catalog) Unloaded(name string, s Server) {
	c.mu.Lock()
	delete(c.steps, name)
	delete(c.implicit, name)
	c.mu.Unlock()
	c.isolate(name, s)
}

func (c *Catalog) isolate(name string, s Server) {
	for _, outer := range c.affected([]string{name}, nil) {
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
	return slices.Compact(slices.Sorted(slices.Values(c.steps[name])))
}

// IsLeft reports whether a model was loaded for ensembles alone, of which none is left.
func (c *Catalog) IsLeft(name string) bool {
	c.mu.Lock()
	isImplicit := c.implicit[name]
	c.mu.Unlock()
	return isImplicit && len(c.affected([]string{name}, nil)) == 0
}

// loaded notes that a model was loaded, or waits for its models.
func (c *Catalog) loaded(name string, steps []string, asked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.steps == nil {
		c.steps, c.implicit = map[string][]string{}, map[string]bool{}
	}
	if _, known := c.implicit[name]; asked || !known {
		c.implicit[name] = !asked
	}
	if len(steps) > 0 {
		c.steps[name] = steps
	} else {
		delete(c.steps, name)
	}
}

// loading is one call of Load.
type loading struct {
	catalog *Catalog
	server  Server
	names   []string
	again   bool

	mu      sync.Mutex
	steps   map[string][]string // of each model that was looked at
	changed []string            // models of which other versions serve now
}

// Steps implements repository.
func (l *loading) Steps(name string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	steps, known := l.steps[name]
	if !known {
		for _, step := range l.server.Config(name).GetEnsembleScheduling().GetStep() {
			steps = append(steps, step.GetModelName())
		}
		l.steps[name] = steps
	}
	return steps
}

// Exists implements repository.
func (l *loading) Exists(name string) bool { return l.Serves(name) || l.server.Config(name) != nil }

// Serves implements repository.
func (l *loading) Serves(name string) bool { return l.server.Serves(name) }

// Load implements repository.
func (l *loading) Load(ctx context.Context, name string) error {
	asked := slices.Contains(l.names, name)
	changed, err := l.server.Load(ctx, name, asked, l.again && asked)
	var refused *Refused
	if errors.As(err, &refused) {
		return l.Refuse(name, refused.Why)
	}
	if err == nil {
		l.catalog.loaded(name, l.Steps(name), asked)
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
	l.catalog.loaded(name, l.Steps(name), slices.Contains(l.names, name))
	l.server.Drop(name)
	return &Refused{Why: why}
}
