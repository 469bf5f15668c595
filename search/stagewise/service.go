package stagewise

import (
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/pools"
)

// A service trial has one request of the pipeline in flight, so its stages compute one after the other and
// each is alone. The statistics of the stages then give a curve of each from the same windows. So as many
// service trials are made as the stage with the most engines needs.

// price returns the next service trial before the search: of the default's engines, and then of engines that
// show the effect of an untried value. It returns false when all are priced, or the share of the budget for
// them is used.
func (x *Stagewise) price() (search.Action, bool) {
	own := make([]search.Candidate, len(x.stages))
	why := ""
	for i, s := range x.stages {
		pool, because := x.wish(s)
		if pool == nil {
			own[i] = s.pools.Widest(s.anyPool())
			continue
		}
		if why == "" {
			why = because + " of stage " + s.name
		}
		own[i] = s.pools.Widest(pool)
	}
	if why == "" {
		return search.Action{}, false
	}
	sizes := x.sizes(own)
	return search.Action{Trial: search.Trial{
		Candidate: x.joined(own), Load: measure.Load{Concurrency: 1, BatchSize: sizes[0]}, Windows: len(sizes), Window: x.guided.Service.Window,
		Phase: search.PhaseService, Sizes: sizes, Longest: x.pace.Longest(x.tightest()),
	}, Why: why}, true
}

// wish returns the pool that a stage opens next; nil for none.
func (x *Stagewise) wish(s *stage) (*pools.Pool, string) {
	if s.pools.IsPriced() && x.pace.Searched() > x.guided.Trials.ExploreShare {
		return nil, ""
	}
	if d, ok := s.pools.Default(); ok && !d.HasFailed() && !d.Engine().IsOpen() {
		return d, "service times of the default"
	}
	e := s.pools.Unexplored(s.pools.Experience())
	if e == nil || e.EntryPool() == nil || e.IsOpen() {
		return nil, ""
	}
	return e.EntryPool(), "service times of an engine"
}

// anyPool returns an engine process of the stage that serves, or may.
func (s *stage) anyPool() *pools.Pool {
	all := s.pools.All()
	for _, isGood := range []func(*pools.Pool) bool{
		func(p *pools.Pool) bool { return !p.HasFailed() && p.Engine().IsOpen() },
		func(p *pools.Pool) bool { return !p.HasFailed() },
	} {
		if i := slices.IndexFunc(all, isGood); i >= 0 {
			return all[i]
		}
	}
	return all[0]
}

// sizes lists the client batches of a service trial: from the requests' own in powers of two to the largest
// that every stage takes. A pipeline that does not batch takes its own requests alone.
func (x *Stagewise) sizes(own []search.Candidate) []int {
	client, most := x.client(), math.MaxInt
	if !x.settings.Space.Facts.Batching {
		return []int{client}
	}
	for i, s := range x.stages {
		most = min(most, max(s.pools.Queue(own[i]).MaxBatch, 1))
	}
	sizes := []int{client}
	for size := 1; size <= most; size *= 2 {
		if size > client {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// tightest returns the least limit on a latency, in s; +Inf without one.
func (x *Stagewise) tightest() float64 {
	least := math.Inf(1)
	for _, c := range x.settings.Goal.Constraints {
		if info, _ := c.Metric.Info(); info.Unit == measure.Seconds && c.Max != nil {
			least = min(least, *c.Max)
		}
	}
	return least
}

// recordService learns the curves of all stages from a service trial.
func (x *Stagewise) recordService(e search.Event) {
	for _, s := range x.stages {
		pool, known := s.pools.Of(s.own(e.Trial.Candidate))
		if known && !pool.HasFailed() && len(e.Measurement.Windows) > 0 {
			s.predictor.Learn(pool, ofStage(e, s.name))
		}
	}
	if n := len(e.Measurement.Windows); n > 0 && e.Trial.Sizes[0] == x.client() {
		if outside, ok := outsideOf(e.Measurement.Windows[0]); ok && (x.overhead == 0 || outside < x.overhead) {
			x.overhead = outside
		}
	}
	x.forget()
}

// forget drops what was computed from the service times before.
func (x *Stagewise) forget() {
	clear(x.simulated)
	clear(x.known)
}

// ofStage returns a service trial as if the stage had been measured alone.
func ofStage(e search.Event, name string) search.Event {
	windows := slices.Clone(e.Measurement.Windows)
	for i := range windows {
		windows[i].Server, _ = windows[i].Stage(name)
	}
	e.Measurement.Windows, e.Measurement.Failure = windows, nil
	return e
}

// outsideOf returns the time of a request outside of the stages, in s: its mean latency less the times in
// their queues and instances.
func outsideOf(w measure.Window) (float64, bool) {
	latency, ok := measure.Measurement{Windows: []measure.Window{w}}.Estimate(measure.LatencyAvg)
	s := w.Server
	if !ok || s.Requests == 0 {
		return 0, false
	}
	inside := (s.Queue + s.Compute()).Seconds() / float64(s.Requests)
	return max(latency.Value-inside, 0), true
}

// recordBatches learns the time of batches that no service trial had: a stage beside one that takes small
// requests alone gets larger batches from its batcher only. Other stages computed meanwhile, so such a time
// is too long, and a service trial's is never replaced by it.
func (x *Stagewise) recordBatches(e search.Event) {
	for _, s := range x.stages {
		pool, known := s.pools.Of(s.own(e.Trial.Candidate))
		if !known || pool.HasFailed() || !pool.Engine().IsOpen() {
			continue
		}
		for _, w := range e.Measurement.Windows {
			stats, _ := w.Stage(s.name)
			for _, b := range stats.Batches {
				isPower := b.Size&(b.Size-1) == 0
				if b.Executions < x.tuning.Executions || !isPower || b.Size <= pool.Engine().Alone().Largest() {
					continue
				}
				one := e
				one.Trial.Sizes, one.Trial.Kinds, one.Trial.Load = []int{b.Size}, nil, measure.Load{Concurrency: 1, BatchSize: b.Size}
				w.Server = stats
				one.Measurement.Windows = []measure.Window{w}
				s.predictor.Learn(pool, one)
				x.forget()
			}
		}
	}
}
