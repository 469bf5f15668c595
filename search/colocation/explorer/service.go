package explorer

import (
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/colocation"
	"tuner/search/guided/pools"
)

// wish is a service trial that a model needs next.
type wish struct {
	pool        *pools.Pool
	concurrency int
	why         string
}

// price returns the next service trial before the search: of the default's engine processes, and of
// engines that show the effect of an untried value. It returns false when all are priced, or the share of
// the budget for them is used.
func (x *Explorer) price() (search.Action, bool) {
	if x.search != nil || x.refusal != "" {
		return search.Action{}, false
	}
	wishes, isAny := make([]wish, len(x.parts)), false
	for i, p := range x.parts {
		var ok bool
		wishes[i], ok = x.wishOf(p)
		isAny = isAny || ok
	}
	if !isAny {
		return search.Action{}, false
	}
	return x.grant(wishes), true
}

// wishOf returns the service trial that a model needs before the search; false if it needs none.
func (x *Explorer) wishOf(p *part) (wish, bool) {
	if p.pools.IsPriced() && x.clock.Searched() > x.tuning.Trials.ExploreShare {
		return wish{}, false
	}
	if d, ok := p.pools.Default(); ok && d.IsUnopened() {
		return p.opening(d, "service times of the default"), true
	}
	known := p.pools.Experience()
	e := p.pools.Unexplored(known)
	if e == nil || e.EntryPool() == nil || e.IsOpen() {
		return wish{}, false
	}
	return wish{e.EntryPool(), 1, "service times of an engine"}, true
}

// opening returns the next service trial that a pool needs before its first load.
func (p *part) opening(pool *pools.Pool, why string) wish {
	if !pool.Engine().IsOpen() {
		return wish{pool, 1, why}
	}
	return wish{pool, pool.Instances(), why + ", with all instances busy"}
}

// grant returns the service trial of one of the wishes: one that the running process can grant, or the
// first one, in a process that grants those of all models one after the other.
func (x *Explorer) grant(wishes []wish) search.Action {
	own := make([]*pools.Pool, len(x.parts))
	for i, p := range x.parts {
		if pool, known := p.pools.Of(p.own(x.last)); known && !pool.HasFailed() {
			own[i] = pool
		}
	}
	isRunning := !slices.Contains(own, nil)
	for i, w := range wishes {
		if isRunning && w.pool != nil && w.pool == own[i] {
			return x.service(i, w, own, x.last.Of(""))
		}
	}
	first := -1
	for i, w := range wishes {
		switch {
		case w.pool != nil:
			own[i] = w.pool
			if first < 0 {
				first = i
			}
		case own[i] == nil:
			own[i] = x.parts[i].anyPool()
		}
	}
	return x.service(first, wishes[first], own, search.Candidate{})
}

// anyPool returns an engine process of the model that serves, or may.
func (p *part) anyPool() *pools.Pool {
	all := p.pools.All()
	for _, isGood := range []func(*pools.Pool) bool{(*pools.Pool).IsReady, (*pools.Pool).IsUnopened} {
		if i := slices.IndexFunc(all, isGood); i >= 0 {
			return all[i]
		}
	}
	return all[0]
}

// service returns the service trial of a model in the process of the pools of all models. Each has the
// candidate with the largest batches, so that the process need not be reconfigured between two of them.
func (x *Explorer) service(model int, w wish, own []*pools.Pool, server search.Candidate) search.Action {
	p := x.parts[model]
	sizes := slices.DeleteFunc(slices.Clone(p.pools.Sizes(w.pool)), w.pool.Refuses)
	if len(sizes) == 0 {
		sizes = p.pools.Sizes(w.pool)[:1]
	}
	settings := make([]search.Candidate, len(own))
	for i, pool := range own {
		settings[i] = x.parts[i].pools.Widest(pool)
	}
	return search.Action{Trial: search.Trial{
		Candidate: x.joined(server, settings), Model: p.name, Load: measure.Load{Concurrency: w.concurrency, BatchSize: sizes[0]},
		Windows: len(sizes) * p.pools.WindowsPerSize(), Window: x.tuning.Service.Window, Phase: search.PhaseService,
		Sizes: sizes, Kinds: p.pools.Kinds(), Longest: x.clock.Longest(p.tightest()),
	}, Why: w.why + " of model " + p.name}
}

// recordService learns a service trial, and revises the options whose times it has changed.
func (x *Explorer) recordService(e search.Event) {
	i := slices.IndexFunc(x.parts, func(p *part) bool { return p.name == e.Trial.Model })
	if f := e.Measurement.Failure; i < 0 || f != nil && isAtStart(*f) {
		return // blame has dropped what did not start
	}
	p := x.parts[i]
	pool, known := p.pools.Of(p.own(e.Trial.Candidate))
	if !known {
		return
	}
	p.predictor.Learn(pool, e)
	if x.search == nil {
		return
	}
	if pool.HasFailed() {
		x.drop(i, pool)
		return
	}
	x.search.Revise(i, x.revised(p))
	if cell, ok := x.cellOf(e.Trial.Candidate); ok {
		x.search.Run(cell)
	}
}

// revised returns the options whose times a service trial has shown: those of measured pools that were
// expected before. Expectations of others change little, and each change would repeat their
// simulations.
func (x *Explorer) revised(p *part) map[int]colocation.Option {
	changed := map[int]colocation.Option{}
	for i := range p.options {
		if !p.options[i].isMeasured && p.options[i].pool.IsReady() {
			p.options[i].isMeasured = true
			changed[i] = p.made(i, x.clock.Size().Seconds())
		}
	}
	return changed
}
