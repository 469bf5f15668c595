package pools

import (
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/footprint"
	"tuner/search/guided/service"
	"tuner/search/queuesim"
)

// Engine holds all settings of a pool except the number of instances.
type Engine struct {
	index    int
	values   []search.Value // by the space's engine knobs, "" if unset
	pools    []*Pool        // ascending by instances
	alone    service.Times  // with one request in flight
	opened   *Pool          // the pool on which that was measured
	zones    []zone         // failures in all its pools
	attempts int            // number of pools that may fail before the engine counts as failed
}

// Index returns the engine's index in Pools.Engines.
func (e *Engine) Index() int { return e.index }

// Values returns the values of the engine knobs in the space's order, "" if unset. The caller must
// not change them.
func (e *Engine) Values() []search.Value { return e.values }

// Pools returns the engine's pools, ascending by instances. The caller must not change the list.
func (e *Engine) Pools() []*Pool { return e.pools }

// Alone returns the times of batches with one request in flight.
func (e *Engine) Alone() *service.Times { return &e.alone }

// IsOpen reports whether the engine's service times are known.
func (e *Engine) IsOpen() bool { return e.alone.IsKnown() }

// OpenedOn returns the pool on which the engine's service times were measured in this campaign; nil
// without one.
func (e *Engine) OpenedOn() *Pool { return e.opened }

// EntryPool returns the pool on which the engine is opened: the one with the fewest instances that
// has not failed. nil if the engine has failed.
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

// isTried reports whether the engine is open, or one of its pools has failed.
func (e *Engine) isTried() bool {
	return e.IsOpen() || slices.ContainsFunc(e.pools, (*Pool).HasFailed)
}

// Pool is one engine process: an engine with its count of instances. Its batchers and loads are its
// cells.
type Pool struct {
	key       string
	settings  search.Candidate // common settings of its candidates
	engine    *Engine
	instances int
	threads   int                // of one instance, if it computes on the cores; 0 unknown
	maxBatch  int                // largest of its candidates, at least 1
	members   []search.Candidate // considered ones; none until its service times are known
	isMember  map[string]bool    // by key; only in a large pool, which considers a part
	hosts     bool               // the default is one of its candidates, in addition to the space's
	crowded   service.Times      // with a request in flight for each instance
	failure   string             // reason why it is out
	starts    int                // failed launches
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
	Padding   search.Value // of its requests
	Below     int          // the next smaller batch of the pool whose batcher differs in nothing else; 0: none
}

// Setting is a batcher at a load: a cell within its pool.
type Setting struct {
	Batcher int // index in the pool
	Level   float64
}

// Cell is a configuration at a load.
type Cell struct {
	Pool *Pool
	Setting
}

// Batcher returns the cell's candidate.
func (c Cell) Batcher() Batcher { return c.Pool.batchers[c.Setting.Batcher] }

// MaxBatch returns the largest batch of the cell's executions.
func (c Cell) MaxBatch() int { return max(c.Batcher().Queue.MaxBatch, 1) }

// SharesCandidate reports whether two cells have one configuration.
func (c Cell) SharesCandidate(o Cell) bool {
	return c.Pool == o.Pool && c.Setting.Batcher == o.Setting.Batcher
}

// History holds the search's measurements of a cell.
type History struct {
	Key         string // of the candidate
	Level       float64
	Measurement measure.Measurement // all windows together
	Trials      int
}

// Seconds returns the mean duration of its trials.
func (h *History) Seconds() float64 {
	sum := 0.0
	for _, w := range h.Measurement.Windows {
		sum += w.Duration.Seconds()
	}
	return sum / float64(h.Trials)
}

// Key returns the pool's key (search.Candidate.PoolKey).
func (p *Pool) Key() string { return p.key }

// Settings returns the common settings of the pool's candidates.
func (p *Pool) Settings() search.Candidate { return p.settings }

// Engine returns the pool's engine.
func (p *Pool) Engine() *Engine { return p.engine }

// Instances returns the number of instances, on all devices.
func (p *Pool) Instances() int { return p.instances }

// Threads returns the number of threads that an instance computes on; 0 if it does not compute on
// the cores, or if that is unknown.
func (p *Pool) Threads() int { return p.threads }

// MaxBatch returns the largest batch of the pool's candidates, at least 1.
func (p *Pool) MaxBatch() int { return p.maxBatch }

// Members returns the considered candidates. The caller must not change the list.
func (p *Pool) Members() []search.Candidate { return p.members }

// Together returns the times of batches with a request in flight for each instance.
func (p *Pool) Together() *service.Times { return &p.crowded }

// ServiceTimes returns the known service times of the pool.
func (p *Pool) ServiceTimes() *service.Times {
	if p.IsReady() && p.instances > 1 {
		return &p.crowded
	}
	return &p.engine.alone
}

// Memory returns the memory of the pool's processes.
func (p *Pool) Memory() *footprint.Pool { return p.memory }

// Failure returns the reason why the pool is out; "" if it is not.
func (p *Pool) Failure() string { return p.failure }

// HasFailed reports whether the pool is out.
func (p *Pool) HasFailed() bool { return p.failure != "" }

// Fail takes the pool out.
func (p *Pool) Fail(reason string) { p.failure = reason }

// FailStart records a failed launch. A pool that has served is out only after the second one, since
// the first may be chance.
func (p *Pool) FailStart(reason string) {
	if p.starts++; len(p.histories) == 0 || p.starts == p.engine.attempts {
		p.failure = reason
	}
}

// RecordService adds a service trial in the pool's process. If it fails without measured sizes, it
// closes the pool. If smaller batches were measured first, it rules out the failed and larger ones:
// with one client, in all pools of the engine. Where nothing failed, and a size has a time from an earlier
// trial, it got no answer by chance.
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
	case isRefused && (f != nil || !times.Has(size)):
		ruleOut(size)
	}
}

// IsReady reports whether the simulation of the pool's queue has all its inputs.
func (p *Pool) IsReady() bool { return p.failure == "" && p.batchers != nil }

// IsUnopened reports whether the pool may still be opened: it has not failed, and is not ready.
func (p *Pool) IsUnopened() bool { return !p.HasFailed() && !p.IsReady() }

// Batchers returns the batchers of the members. The caller must not change the list.
func (p *Pool) Batchers() []Batcher { return p.batchers }

// Find returns the index of a candidate among the pool's batchers.
func (p *Pool) Find(key string) (int, bool) {
	i := slices.IndexFunc(p.batchers, func(b Batcher) bool { return b.Key == key })
	return i, i >= 0
}

// Cell returns the pool's cell of a history; false if the candidate is not among its batchers.
func (p *Pool) Cell(h *History) (Cell, bool) {
	at, found := p.Find(h.Key)
	return Cell{p, Setting{at, h.Level}}, found
}

// Histories returns the measurements of the pool's cells. The caller must not change the list.
func (p *Pool) Histories() []*History { return p.histories }

// IsMeasured reports whether any cell was measured.
func (p *Pool) IsMeasured() bool { return len(p.histories) > 0 }

// History returns the measurements of a cell; nil without any.
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

// below returns the largest smaller batch of an otherwise equal batcher. That batcher waits as
// long, and joins requests in the same way or has none to join. 0 without one.
func (p *Pool) below(of Batcher) int {
	below, b := 0, of.Queue
	for _, other := range p.batchers {
		q := other.Queue
		if other.Padding != of.Padding {
			continue
		}
		isAlike := q.Delay == b.Delay && (q.Dynamic == b.Dynamic || q.MaxBatch <= 1)
		if q.MaxBatch < b.MaxBatch && isAlike && len(q.Preferred) == 0 && len(b.Preferred) == 0 {
			below = max(below, q.MaxBatch)
		}
	}
	return below
}
