package engine

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"tuner/engine/api"
)

// Failure says why a request failed, as Triton's metrics label it.
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

// statistics counts what one version of a model did since it was loaded, as the statistics extension shows it, and since it
// was last unloaded, as metrics do: in Triton a reload starts the former anew but not the latter. The requests of a batch are
// counted one after the other, behind their execution, so that a snapshot can show an execution before all of its requests.
type statistics struct {
	*history
	load counters // guarded by history.mu
}

// history is what the models that served a version one after the other have in common.
type history struct {
	observe Observer // nil: nobody asks

	mu  sync.Mutex
	all counters
}

// counters are one set of figures. Their owner has a lock.
type counters struct {
	total         api.ModelStatistics // without BatchStats
	batches       map[int]*api.BatchStatistics
	failures      map[Failure]uint64
	lastInference time.Time
}

// Timing is what one answered request took: from its acceptance to its answer, in the queue, and in the three steps of its
// execution.
type Timing struct{ Total, Queue, Input, Infer, Output time.Duration }

// Observer is told of each answered request by whoever answers it, so that it must be quick, and safe for concurrent use.
type Observer func(Timing)

// span is what one execution took, in three steps.
type span struct{ input, infer, output time.Duration }

// newStatistics makes the counters of a model version, and lets the server's observer know of its requests.
func (s *Server) newStatistics(model string, version int64) *statistics {
	h := &history{all: newCounters()}
	if tell := s.options.Observe; tell != nil {
		h.observe = tell(model, version)
	}
	return &statistics{history: h, load: newCounters()}
}

// successor makes the counters of a model that takes the place of the one that s counts.
func (s *statistics) successor() *statistics {
	return &statistics{history: s.history, load: newCounters()}
}

// executed counts a successful execution of a batch.
func (s *statistics) executed(rows int, d span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load.executed(rows, d)
	s.all.executed(rows, d)
}

// succeeded counts a request that was answered at end.
func (s *statistics) succeeded(rows int, total, queue time.Duration, d span, end time.Time) {
	if s.observe != nil {
		s.observe(Timing{total, queue, d.input, d.infer, d.output})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load.succeeded(rows, total, queue, d, end)
	s.all.succeeded(rows, total, queue, d, end)
}

// failed counts a request that was queued and not answered. One that finds the queue full never was.
func (s *statistics) failed(why Failure, total time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load.failed(why, total)
	s.all.failed(why, total)
}

func newCounters() counters {
	return counters{batches: map[int]*api.BatchStatistics{}, failures: map[Failure]uint64{}}
}

func (c *counters) executed(rows int, d span) {
	c.total.ExecutionCount++
	b := c.batches[rows]
	if b == nil {
		b = &api.BatchStatistics{BatchSize: uint64(rows)}
		c.batches[rows] = b
	}
	add(&b.ComputeInput, d.input)
	add(&b.ComputeInfer, d.infer)
	add(&b.ComputeOutput, d.output)
}

func (c *counters) succeeded(rows int, total, queue time.Duration, d span, end time.Time) {
	c.lastInference = end
	c.total.InferenceCount += uint64(rows)
	i := &c.total.InferenceStats
	add(&i.Success, total)
	add(&i.Queue, queue)
	add(&i.ComputeInput, d.input)
	add(&i.ComputeInfer, d.infer)
	add(&i.ComputeOutput, d.output)
}

func (c *counters) failed(why Failure, total time.Duration) {
	c.failures[why]++
	add(&c.total.InferenceStats.Fail, total)
}

func add(d *api.Duration, t time.Duration) {
	d.Count++
	d.NS += uint64(max(t, 0))
}

// sinceLoad copies the counters of the given model version since it was loaded.
func (s *statistics) sinceLoad(name string, version int64) api.ModelStatistics {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load.snapshot(name, version)
}

// sinceUnload copies the counters of the given model version and of all that it has replaced.
func (s *statistics) sinceUnload(name string, version int64) (api.ModelStatistics, map[Failure]uint64) {
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
