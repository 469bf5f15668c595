// Package steering changes the configuration of a served model with its load, as a table says. It
// counts the requests of each tick, asks the rule of package adaptive, and tells the server. The server
// may be in this process (engine/serve) or another one (adaptive/triton).
package steering

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"tuner/adaptive"
)

// Server is a server whose model can get another configuration. Its methods block until the work is
// done, and retain nothing.
type Server interface {
	// Arrived returns the number of requests of a model so far. It returns an error if the model does not
	// serve, or was loaded by somebody else since the last call.
	Arrived(ctx context.Context, model string) (uint64, error)
	// Reconfigure gives a model another configuration, as Triton's JSON. The model serves meanwhile.
	Reconfigure(ctx context.Context, model, config string) error
}

// Wheel steers one model. It is for one goroutine.
type Wheel struct {
	server Server
	model  string
	rule   *adaptive.Rule
	log    *slog.Logger
	seen   uint64    // requests so far
	at     time.Time // when they were counted
	serves string    // name of the configuration
	silent bool      // the server did not answer the last time
	lost   bool      // the server may serve another configuration than that: it did not answer since the last change
}

// New makes the wheel of a table; nil if changing does not pay. The model gets the table's static
// configuration, with which the rule begins.
func New(ctx context.Context, s Server, t *adaptive.Table, log *slog.Logger) (*Wheel, error) {
	if _, err := s.Arrived(ctx, t.Model); err != nil {
		return nil, err
	}
	if !t.Pays {
		log.Info("the model keeps its configuration", "model", t.Model, "reason", t.Summary)
		return nil, nil
	}
	w := &Wheel{server: s, model: t.Model, rule: adaptive.New(t), log: log}
	if err := w.change(ctx, w.rule.Current()); err != nil {
		return nil, fmt.Errorf("cannot change the configuration of the model %q: %w", t.Model, err)
	}
	return w, w.recount(ctx)
}

// Run decides at each tick, until ctx ends.
func (w *Wheel) Run(ctx context.Context) {
	ticks := time.NewTicker(adaptive.Tick)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			w.tick(ctx, time.Now())
		}
	}
}

// tick counts the requests since the last count, and changes the configuration if the rule says so. A
// change that fails leaves the model as it is; the rule asks for it again later. A server that did not answer
// may have been started again with the configuration of its repository, so it gets the rule's again.
//
// A tick comes late on a busy machine, and soon after a long change. So the count is scaled to the
// length of a tick, and what is shorter than half of one waits for the next.
func (w *Wheel) tick(ctx context.Context, now time.Time) {
	passed := now.Sub(w.at)
	if passed < adaptive.Tick/2 {
		return
	}
	n, err := w.server.Arrived(ctx, w.model)
	if err != nil {
		if !w.silent && ctx.Err() == nil {
			w.log.Error("cannot count the requests of a model", "model", w.model, "error", err)
		}
		w.silent, w.lost = true, true
		return
	}
	w.silent = false
	came := max(n, w.seen) - w.seen // a request that begins to execute is not counted for a moment
	w.seen, w.at = w.seen+came, now
	c, isOther := w.rule.Observe(int(math.Round(float64(came) * adaptive.Tick.Seconds() / passed.Seconds())))
	if !isOther && (!w.lost || w.rule.Rests()) {
		return
	}
	err = w.change(ctx, c)
	if err == nil {
		err = w.recount(ctx) // requests that came during the change are of no tick
	} else {
		w.rule.Stay(w.serves)
	}
	if err != nil && ctx.Err() == nil {
		w.log.Error("cannot change the configuration of a model", "model", w.model, "configuration", c.Name, "error", err)
	}
}

// recount begins a tick now.
func (w *Wheel) recount(ctx context.Context) error {
	n, err := w.server.Arrived(ctx, w.model)
	if err != nil {
		return err
	}
	w.seen, w.at = max(w.seen, n), time.Now()
	return nil
}

func (w *Wheel) change(ctx context.Context, c adaptive.Configuration) error {
	if err := w.server.Reconfigure(ctx, w.model, string(c.Config)); err != nil {
		return err
	}
	w.serves, w.lost = c.Name, false
	w.log.Info("the model serves with another configuration", "model", w.model, "configuration", c.Name, "setup", c.Setup)
	return nil
}
