// Package poll keeps a server's models as the model repositories have them, for
// --model-control-mode=poll.
//
// It stands above package engine, which it knows by an interface. It compares what two polls found,
// and has models loaded and unloaded. It reads no file.
package poll

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// Server loads and unloads models for the poller. All methods block until the work is done, and retain
// nothing.
type Server interface {
	// Scan returns the models of the repositories, each with a text that changes when its files do.
	Scan(ctx context.Context) (map[string]string, error)
	// Refresh loads a model. A model that serves the same files already is left alone. It ends early
	// if ctx ends.
	Refresh(ctx context.Context, model string) error
	// Withdraw unloads a model, if it is known.
	Withdraw(model string)
}

// Poller follows the repositories. It is used by one goroutine.
type Poller struct {
	server  Server
	threads int
	log     *slog.Logger
	last    map[string]string // what the last poll found; nil: it failed
	taken   map[string]string // what was loaded; "": nothing of what was found since
}

// New returns a poller, and makes the first poll. The models that it finds count as known, so that
// they are unloaded when they go. The caller loads them at the start without a second poll, as in
// the other modes. threads is the number of models that are loaded at the same time.
func New(ctx context.Context, s Server, threads int, log *slog.Logger) *Poller {
	p := &Poller{server: s, threads: max(1, threads), log: log, taken: map[string]string{}}
	p.last = p.scan(ctx)
	for model := range p.last {
		p.taken[model] = ""
	}
	return p
}

// Run polls until ctx ends.
func (p *Poller) Run(ctx context.Context, interval time.Duration) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			p.Poll(ctx)
		}
	}
}

// Poll looks at the repositories, and acts on the models of which this poll and the last one found
// the same: files, or none. So a model is not loaded while its files are copied, and it serves on
// while its folder is replaced. A load that failed is tried again at each poll, as in Triton, since
// its cause may have gone. If a repository cannot be read, all stays as it is.
func (p *Poller) Poll(ctx context.Context) {
	now := p.scan(ctx)
	load, unload := decide(p.last, now, p.taken)
	p.last = now
	for _, model := range unload {
		p.log.Info("unloading model: its folder is gone", "model", model)
		p.server.Withdraw(model)
		delete(p.taken, model)
	}
	failed := make([]error, len(load))
	group, loading := errgroup.WithContext(ctx)
	group.SetLimit(p.threads)
	for i, model := range load {
		group.Go(func() error {
			failed[i] = p.server.Refresh(loading, model)
			return nil
		})
	}
	_ = group.Wait() // the errors are in failed
	for i, model := range load {
		if p.taken[model] = now[model]; failed[i] != nil {
			p.taken[model] = ""
			p.log.Error("cannot load model", "model", model, "error", failed[i])
		}
	}
}

func (p *Poller) scan(ctx context.Context) map[string]string {
	found, err := p.server.Scan(ctx)
	if err != nil {
		p.log.Error("cannot poll the model repositories, so all models stay as they are", "error", err)
		return nil
	}
	return found
}

// decide returns the models to load and to unload, in order.
func decide(last, now, taken map[string]string) (load, unload []string) {
	if last == nil || now == nil {
		return nil, nil
	}
	for _, model := range slices.Sorted(maps.Keys(now)) {
		if files := now[model]; files == last[model] && files != taken[model] {
			load = append(load, model)
		}
	}
	for _, model := range slices.Sorted(maps.Keys(taken)) {
		if now[model] == "" && last[model] == "" {
			unload = append(unload, model)
		}
	}
	return load, unload
}
