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
	FailureRejected Failure = "REJECTED" // queue full, or timeout in the queue
	FailureCanceled Failure = "CANCELED"
	FailureBackend  Failure = "BACKEND" // the model itself failed
	FailureOther    Failure = "OTHER"
)

// Failures lists all reasons.
func Failures() []Failure {
	return []Failure{FailureRejected, FailureCanceled, FailureBackend, FailureOther}
}

// statistics counts what one version of a model did. The requests of a batch are counted one after the other, behind their
// execution, so that a snapshot can show an execution before all of its requests.
type statistics struct {
	mu            sync.Mutex
	total         api.ModelStatistics // without BatchStats
	batches       map[int]*api.BatchStatistics
	failures      map[Failure]uint64
	lastInference time.Time
	observe       func(Timing) // of each answered request; nil: nobody asks
}

// Timing is what one answered request took: from its acceptance to its answer, in the queue, and in the three steps of its
// execution.
type Timing struct{ Total, Queue, Input, Infer, Output time.Duration }

// span is what one execution took, in three steps.
type span struct{ input, infer, output time.Duration }

// newStatistics makes the counters of a model version, and lets the server's observer know of its requests.
func (s *Server) newStatistics(model string, version int64) *statistics {
	out := &statistics{batches: map[int]*api.BatchStatistics{}, failures: map[Failure]uint64{}}
	if tell := s.options.Observe; tell != nil {
		out.observe = func(t Timing) { tell(model, version, t) }
	}
	return out
}

// executed counts a successful execution of a batch.
func (s *statistics) executed(rows int, d span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.ExecutionCount++
	b := s.batches[rows]
	if b == nil {
		b = &api.BatchStatistics{BatchSize: uint64(rows)}
		s.batches[rows] = b
	}
	add(&b.ComputeInput, d.input)
	add(&b.ComputeInfer, d.infer)
	add(&b.ComputeOutput, d.output)
}

// succeeded counts a request that was answered at end.
func (s *statistics) succeeded(rows int, total, queue time.Duration, d span, end time.Time) {
	if s.observe != nil {
		s.observe(Timing{total, queue, d.input, d.infer, d.output})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastInference = end
	s.total.InferenceCount += uint64(rows)
	i := &s.total.InferenceStats
	add(&i.Success, total)
	add(&i.Queue, queue)
	add(&i.ComputeInput, d.input)
	add(&i.ComputeInfer, d.infer)
	add(&i.ComputeOutput, d.output)
}

// failed counts a request that passed validation and was not answered.
func (s *statistics) failed(why Failure, total time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures[why]++
	add(&s.total.InferenceStats.Fail, total)
}

func add(d *api.Duration, t time.Duration) {
	d.Count++
	d.NS += uint64(max(t, 0))
}

// snapshot copies the counters of the given model version.
func (s *statistics) snapshot(name string, version int64) (api.ModelStatistics, map[Failure]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.total
	out.Name, out.Version = name, strconv.FormatInt(version, 10)
	if !s.lastInference.IsZero() {
		out.LastInference = uint64(s.lastInference.UnixMilli())
	}
	out.ResponseStats = map[string]api.ResponseStatistics{}
	out.MemoryUsage = []api.MemoryUsage{}
	out.BatchStats = make([]api.BatchStatistics, 0, len(s.batches))
	for _, b := range s.batches {
		out.BatchStats = append(out.BatchStats, *b)
	}
	slices.SortFunc(out.BatchStats, func(a, b api.BatchStatistics) int { return cmp.Compare(a.BatchSize, b.BatchSize) })
	return out, maps.Clone(s.failures)
}
