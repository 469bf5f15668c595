package serve

import (
	"context"
	"log/slog"
	"time"

	"tuner/adaptive"
	"tuner/internal/exit"
)

// changer is a server whose model can get another configuration. Its methods block until the work is
// done, and retain nothing.
type changer interface {
	// Arrived returns the number of requests of a model so far, and whether it serves.
	Arrived(model string) (n uint64, serves bool)
	Reconfigure(ctx context.Context, model, config string) error
}

// adapter changes the configuration of a model with its load, as a table says. It is for one goroutine.
type adapter struct {
	server changer
	model  string
	rule   *adaptive.Rule
	log    *slog.Logger
	seen   uint64 // requests so far
	serves string // name of the configuration
}

// newAdapter makes the adapter of a table, nil if changing does not pay. The model gets the table's static
// configuration, with which the rule begins. The models of the start have been loaded.
func newAdapter(ctx context.Context, s changer, t *adaptive.Table, log *slog.Logger) (*adapter, error) {
	if t == nil {
		return nil, nil
	}
	if _, serves := s.Arrived(t.Model); !serves {
		return nil, exit.Usagef("--adaptive: its model %q is not served: name a repository that has it", t.Model)
	}
	if !t.Pays {
		log.Info("the model keeps its configuration", "model", t.Model, "reason", t.Summary)
		return nil, nil
	}
	a := &adapter{server: s, model: t.Model, rule: adaptive.New(t), log: log}
	if err := a.change(ctx, a.rule.Current()); err != nil {
		return nil, exit.Usagef("--adaptive: %v", err)
	}
	a.seen, _ = s.Arrived(t.Model)
	return a, nil
}

// run decides at each tick, until ctx ends.
func (a *adapter) run(ctx context.Context, ticks <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
			a.tick(ctx)
		}
	}
}

// tick counts the requests since the last one, and changes the configuration if the rule says so. A
// change that fails leaves the model as it is; the rule may ask for it again.
func (a *adapter) tick(ctx context.Context) {
	n, _ := a.server.Arrived(a.model)
	came := max(n, a.seen) - a.seen // a request that begins to execute is not counted for a moment
	a.seen += came
	c, isOther := a.rule.Observe(int(came))
	if !isOther {
		return
	}
	if err := a.change(ctx, c); err != nil {
		a.rule.Stay(a.serves)
		if ctx.Err() == nil {
			a.log.Error("cannot change the configuration of a model", "model", a.model, "configuration", c.Name, "error", err)
		}
	}
}

func (a *adapter) change(ctx context.Context, c adaptive.Configuration) error {
	if err := a.server.Reconfigure(ctx, a.model, string(c.Config)); err != nil {
		return err
	}
	a.serves = c.Name
	a.log.Info("the model serves with another configuration", "model", a.model, "configuration", c.Name, "setup", c.Setup)
	return nil
}
