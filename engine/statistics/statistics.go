// Package statistics counts what a version of a model has answered, failed and executed, as Triton's
// statistics extension and metrics do.
//
// Package engine tells it of each request and each execution. Front ends and metrics read it. It knows
// neither models nor requests.
package statistics

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"tuner/engine/api"
)

// Failure is the reason why a request failed, as in the labels of Triton's metrics.
type Failure string

// Reasons of failures.
const (
	FailureRejected Failure = "REJECTED" // timeout in the queue
	FailureCanceled Failure = "CANCELED"
	FailureBackend  Failure = "BACKEND" // the model itself failed
	FailureOther    Failure = "OTHER"   // no memory for the answer
)

// Failures lists all reasons.
func Failures() []Failure {
	return []Failure{FailureRejected, FailureCanceled, FailureBackend, FailureOther}
}

// Statistics counts for one version of a model. It has the figures since the load, for the
// statistics extension, and since the last unload, for metrics. In Triton a reload resets the
// former, but not the latter. The requests of a batch are counted one after the other, after their
// execution. So a snapshot can have an execution before all of its requests.
type Statistics struct {
	*history
	load counters // guarded by history.mu
}

// history is shared by the models that served a version one after the other.
type history struct {
	observe Observer // nil: no observer

	mu  sync.Mutex
	all counters
}

// counters are one set of figures. Their owner has the lock.
type counters struct {
	total         api.ModelStatistics // without BatchStats
	batches       map[int]*api.BatchStatistics
	failures      map[Failure]uint64
	lastInference time.Time
}

// Timing holds the durations of one answered request: from its acceptance to its answer, in the
// queue, in the three steps of its execution, and in the response cache.
type Timing struct {
	Total, Queue, Input, Infer, Output, Cache time.Duration
	IsCached                                  bool // it was not executed: the steps have no durations
	IsMissed                                  bool // it was observed before, and has Cache alone: its answer was not found
}

// Observer is called for each answered request by the goroutine that answers it, and once more if the cache lacked
// its answer. So it must be quick, and safe for concurrent use.
type Observer func(Timing)

// Span holds the durations of one execution, in three steps.
type Span struct{ Input, Infer, Output time.Duration }

// New makes the counters of a version of a model. observe may be nil.
func New(observe Observer) *Statistics {
	return &Statistics{history: &history{observe: observe, all: newCounters()}, load: newCounters()}
}

// Successor makes the counters of a model that replaces the one that s counts for.
func (s *Statistics) Successor() *Statistics {
	return &Statistics{history: s.history, load: newCounters()}
}

// Executed counts a successful execution of a batch.
func (s *Statistics) Executed(rows int, d Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load.executed(rows, d)
	s.all.executed(rows, d)
}

// Succeeded counts a request that was answered at end.
func (s *Statistics) Succeeded(rows int, total, queue time.Duration, d Span, end time.Time) {
	if s.observe != nil {
		s.observe(Timing{Total: total, Queue: queue, Input: d.Input, Infer: d.Infer, Output: d.Output})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load.succeeded(rows, total, queue, d, end)
	s.all.succeeded(rows, total, queue, d, end)
}

// Found counts a request that a cached answer has.
func (s *Statistics) Found(total, queue, took time.Duration) {
	if s.observe != nil {
		s.observe(Timing{Total: total, Queue: queue, Cache: took, IsCached: true})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load.found(total, queue, took)
	s.all.found(total, queue, took)
}

// Missed counts a request that had no cached answer, after succeeded. took is the time of search and
// storage.
func (s *Statistics) Missed(took time.Duration) {
	if s.observe != nil {
		s.observe(Timing{Cache: took, IsMissed: true})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load.missed(took)
	s.all.missed(took)
}

// Failed counts a request that was queued and not answered. A request that finds the queue full was
// never queued.
func (s *Statistics) Failed(why Failure, total time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load.failed(why, total)
	s.all.failed(why, total)
}

func newCounters() counters {
	return counters{batches: map[int]*api.BatchStatistics{}, failures: map[Failure]uint64{}}
}

func (c *counters) executed(rows int, d Span) {
	c.total.ExecutionCount++
	b := c.batches[rows]
	if b == nil {
		b = &api.BatchStatistics{BatchSize: uint64(rows)}
		c.batches[rows] = b
	}
	add(&b.ComputeInput, d.Input)
	add(&b.ComputeInfer, d.Infer)
	add(&b.ComputeOutput, d.Output)
}

func (c *counters) succeeded(rows int, total, queue time.Duration, d Span, end time.Time) {
	c.lastInference = end
	c.total.InferenceCount += uint64(rows)
	i := &c.total.InferenceStats
	add(&i.Success, total)
	add(&i.Queue, queue)
	add(&i.ComputeInput, d.Input)
	add(&i.ComputeInfer, d.Infer)
	add(&i.ComputeOutput, d.Output)
}

func (c *counters) found(total, queue, took time.Duration) {
	i := &c.total.InferenceStats
	add(&i.Success, total)
	add(&i.Queue, queue)
	add(&i.CacheHit, took)
}

func (c *counters) missed(took time.Duration) {
	i := &c.total.InferenceStats
	i.Success.NS += uint64(max(took, 0))
	add(&i.CacheMiss, took)
}

func (c *counters) failed(why Failure, total time.Duration) {
	c.failures[why]++
	add(&c.total.InferenceStats.Fail, total)
}

func add(d *api.Duration, t time.Duration) {
	d.Count++
	d.NS += uint64(max(t, 0))
}

// SinceLoad copies the counters of the given model version since it was loaded.
func (s *Statistics) SinceLoad(name string, version int64) api.ModelStatistics {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load.snapshot(name, version)
}

// SinceUnload copies the counters of the given model version and of all that it has replaced.
func (s *Statistics) SinceUnload(name string, version int64) (api.ModelStatistics, map[Failure]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.snapshot(name, version), maps.Clone(s.all.failures)
}

func (c *counters) snapshot(name string, version int64) api.ModelStatistics {
	out := c.total
	out.Name, out.Version = name, strconv.FormatInt(version, 10)
	if !c.lastInference.IsZero() {
		out.LastInference = uint64(c.lastInference.UnixMilli())
	}
	out.ResponseStats = map[string]api.ResponseStatistics{}
	out.MemoryUsage = []api.MemoryUsage{}
	out.BatchStats = make([]api.BatchStatistics, 0, len(c.batches))
	for _, b := range c.batches {
		out.BatchStats = append(out.BatchStats, *b)
	}
	slices.SortFunc(out.BatchStats, func(a, b api.BatchStatistics) int { return cmp.Compare(a.BatchSize, b.BatchSize) })
	return out
}
