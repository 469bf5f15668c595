package pools

import (
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/footprint"
	"tuner/search/guided/service"
	"tuner/search/queuesim"
)

// Engine is what serves the model: all settings of a pool but the number of instances.
type Engine struct {
	index    int
	values   []search.Value // by the space's engine knobs, "" where one is left alone
	pools    []*Pool        // ascending by instances
	alone    service.Times  // with one request in flight
	opened   *Pool          // where that was measured
	zones    []zone         // that fail in all its pools
	attempts int            // pools that may fail before the engine counts as failed
}

// Index is the engine's place in Pools.Engines.
func (e *Engine) Index() int { return e.index }

// Values are what the engine knobs are set to, in the space's order, "" where one is left alone. The caller must not
// change them.
func (e *Engine) Values() []search.Value { return e.values }

// Pools are the engine's, ascending by instances. The caller must not change the list.
func (e *Engine) Pools() []*Pool { return e.pools }

// Alone is what batches take with one request in flight.
func (e *Engine) Alone() *service.Times { return &e.alone }

// IsOpen reports whether the engine's service times are known.
func (e *Engine) IsOpen() bool { return e.alone.IsKnown() }

// OpenedOn is the pool on which the engine's service times were measured in this campaign; nil where none was.
func (e *Engine) OpenedOn() *Pool { return e.opened }

// EntryPool is the pool on which the engine is opened, the one with the fewest instances that has not failed; nil when
// the engine has failed.
func (e *Engine) EntryPool() *Pool {
	var entry *Pool
	failed := 0
	for _, p := range e.pools {
		switch {
		case p.failure != "":
			failed++
		case entry == nil:
			entry = p
		}
	}
	if !e.IsOpen() && failed >= e.attempts {
		return nil
	}
	return entry
}

// isTried reports whether the engine is open, or a pool of it has failed.
func (e *Engine) isTried() bool {
	return e.IsOpen() || slices.ContainsFunc(e.pools, (*Pool).HasFailed)
}

// Pool is one engine process: an engine and a number of instances. Its batchers and loads are its cells.
type Pool struct {
	key       string
	settings  search.Candidate // what its candidates have in common
	engine    *Engine
	instances int
	threads   int                // of one instance, where it computes on the cores; 0 unknown
	maxBatch  int                // largest of its candidates, at least 1
	members   []search.Candidate // that are looked at; none until its service times are known
	isMember  map[string]bool    // by key; in a large pool, where not all are looked at
	hosts     bool               // the default is one of its candidates, beside the space's
	crowded   service.Times      // with a request in flight for each instance
	failure   string             // why it is out
	starts    int                // launches that failed
	zones     []zone
	memory    *footprint.Pool
	histories []*History
	batchers  []Batcher // of the members; nil until its service times are known
}

// Batcher is a candidate within its pool.
type Batcher struct {
	Candidate search.Candidate
	Key       string
	Queue     queuesim.Batcher
	Below     int // the next smaller batch of the pool, where batchers of both differ in nothing else; 0: none
}

// Setting is a batcher at a load: a cell within its pool.
type Setting struct {
	Batcher int // its place in the pool
	Level   float64
}

// Cell is a configuration at a load.
type Cell struct {
	Pool *Pool
	Setting
}

// Batcher is the cell's candidate.
func (c Cell) Batcher() Batcher { return c.Pool.batchers[c.Setting.Batcher] }

// MaxBatch is the largest batch of the cell's executions.
func (c Cell) MaxBatch() int { return max(c.Batcher().Queue.MaxBatch, 1) }

// SharesCandidate reports whether two cells are of one configuration.
func (c Cell) SharesCandidate(o Cell) bool {
	return c.Pool == o.Pool && c.Setting.Batcher == o.Setting.Batcher
}

// History is what was measured of a cell in the search.
type History struct {
	Key         string // of the candidate
	Level       float64
	Measurement measure.Measurement // all windows together
	Trials      int
}

// Seconds is how long its trials were in the mean.
func (h *History) Seconds() float64 {
	sum := 0.0
	for _, w := range h.Measurement.Windows {
		sum += w.Duration.Seconds()
	}
	return sum / float64(h.Trials)
}

// Key is the pool's key (search.Candidate.PoolKey).
func (p *Pool) Key() string { return p.key }

// Settings are what the pool's candidates have in common.
func (p *Pool) Settings() search.Candidate { return p.settings }

// Engine is the pool's engine.
func (p *Pool) Engine() *Engine { return p.engine }

// Instances is the number of instances, on all devices.
func (p *Pool) Instances() int { return p.instances }

// Threads is how many threads an instance computes on, 0 where it does not compute on the cores or that is unknown.
func (p *Pool) Threads() int { return p.threads }

// MaxBatch is the largest batch of the pool's candidates, at least 1.
func (p *Pool) MaxBatch() int { return p.maxBatch }

// Members are the candidates that are looked at. The caller must not change the list.
func (p *Pool) Members() []search.Candidate { return p.members }

// Together is what batches take with a request in flight for each instance.
func (p *Pool) Together() *service.Times { return &p.crowded }

// ServiceTimes is what is known of the pool's service times.
func (p *Pool) ServiceTimes() *service.Times {
	if p.IsReady() && p.instances > 1 {
		return &p.crowded
	}
	return &p.engine.alone
}

// Memory is what the pool's processes hold.
func (p *Pool) Memory() *footprint.Pool { return p.memory }

// Failure is why the pool is out, "" where it is not.
func (p *Pool) Failure() string { return p.failure }

// HasFailed reports whether the pool is out.
func (p *Pool) HasFailed() bool { return p.failure != "" }

// Fail takes the pool out.
func (p *Pool) Fail(reason string) { p.failure = reason }

// FailStart enters a launch that failed. What has served may have had bad luck, and is out after the second.
func (p *Pool) FailStart(reason string) {
	if p.starts++; len(p.histories) == 0 || p.starts == p.engine.attempts {
		p.failure = reason
	}
}

// RecordService enters a service trial in the pool's process. One that fails closes the pool, or, where smaller batches
// were measured before it did, rules out the batches that it failed with and larger ones: with one client in all pools of
// the engine.
func (p *Pool) RecordService(e search.Event, clientBatch int) {
	times, ruleOut := &p.crowded, func(size int) { p.RuleOutBatches(size, 0) }
	if e.Trial.Load.Concurrency == 1 {
		times, ruleOut, p.engine.opened = &p.engine.alone, p.engine.RuleOutBatches, p
	}
	times.Record(e)
	size, isRefused := service.Refused(e)
	switch f := e.Measurement.Failure; {
	case f != nil && (size <= clientBatch || !times.IsKnown()):
		p.failure = f.Reason
	case !times.IsKnown():
		p.failure = "its service times are unknown"
	case isRefused:
		ruleOut(size)
	}
}

// IsReady reports whether all is known that the simulation of the pool's queue needs.
func (p *Pool) IsReady() bool { return p.failure == "" && p.batchers != nil }

// IsUnopened reports whether the pool may still be opened: it has not failed, and not all is known of it yet.
func (p *Pool) IsUnopened() bool { return !p.HasFailed() && !p.IsReady() }

// Batchers are those of the members. The caller must not change the list.
func (p *Pool) Batchers() []Batcher { return p.batchers }

// Find returns the place of a candidate among the pool's batchers.
func (p *Pool) Find(key string) (int, bool) {
	i := slices.IndexFunc(p.batchers, func(b Batcher) bool { return b.Key == key })
	return i, i >= 0
}

// Cell is the pool's cell of a history, false where the candidate is not among its batchers.
func (p *Pool) Cell(h *History) (Cell, bool) {
	at, found := p.Find(h.Key)
	return Cell{p, Setting{at, h.Level}}, found
}

// Histories are what was measured of the pool's cells. The caller must not change the list.
func (p *Pool) Histories() []*History { return p.histories }

// IsMeasured reports whether any cell was measured.
func (p *Pool) IsMeasured() bool { return len(p.histories) > 0 }

// History returns what was measured of a cell, nil while nothing was.
func (p *Pool) History(key string, level float64) *History {
	i := slices.IndexFunc(p.histories, func(h *History) bool { return h.Key == key && h.Level == level })
	if i < 0 {
		return nil
	}
	return p.histories[i]
}

// Record adds a trial's windows to the history of its cell.
func (p *Pool) Record(key string, level float64, m measure.Measurement) {
	h := p.History(key, level)
	if h == nil {
		h = &History{Key: key, Level: level}
		p.histories = append(p.histories, h)
	}
	h.Trials++
	all := &h.Measurement
	all.Windows = append(all.Windows, m.Windows...)
	all.Memory, all.Launch = max(all.Memory, m.Memory), m.Launch
}

// below is the largest batch of a batcher that waits as long as another but has a smaller batch, joins requests as that
// does, or has nothing to join; 0 where there is none.
func (p *Pool) below(b queuesim.Batcher) int {
	below := 0
	for _, other := range p.batchers {
		q := other.Queue
		isAlike := q.Delay == b.Delay && (q.Dynamic == b.Dynamic || q.MaxBatch <= 1)
		if q.MaxBatch < b.MaxBatch && isAlike && len(q.Preferred) == 0 && len(b.Preferred) == 0 {
			below = max(below, q.MaxBatch)
		}
	}
	return below
}
