package search

import (
	"fmt"
	"slices"
	"strings"

	"tuner/measure"
)

// ClassKey names the server that a candidate of the space is under a load. Candidates
// with equal keys are one and the same server there: whatever is measured of one is true
// of the others.
//
// Two candidates of a pool are that in a closed loop when neither waits for company and
// all requests in flight fit into the largest batch of either. The batcher then hands
// over all that waits as soon as an instance is free, and the largest batch bounds
// nothing. An open loop has no bound on what is in flight, so that every batcher is a
// class of its own there.
func (s Space) ClassKey(c Candidate, load measure.Load) string {
	return s.PoolClass(c) + " " + s.batcherClass(c, load)
}

// PoolClass is the part of ClassKey that the engine process decides, whatever the load. It is
// equal where all settings of the process come to the same: a candidate may say what the
// default has anyway.
func (s Space) PoolClass(c Candidate) string {
	var knobs, parts []string
	for _, k := range s.Knobs {
		knobs = append(knobs, k.Name)
	}
	for _, setting := range c.settings {
		if !slices.Contains(knobs, setting.Knob) {
			knobs = append(knobs, setting.Knob)
		}
	}
	for _, name := range knobs {
		if poolScope(name) != ScopeBatcher {
			parts = append(parts, name+"="+string(s.Value(c, name)))
		}
	}
	return strings.Join(parts, " ")
}

// batcherClass is the part of ClassKey that the batcher's knobs decide.
func (s Space) batcherClass(c Candidate, load measure.Load) string {
	serving, delay := s.Serving(c), s.Value(c, KnobMaxQueueDelay)
	batch, preferred := max(serving.MaxBatch, 1), slices.Sorted(slices.Values(serving.Preferred))
	if batch <= 1 { // a batch of one never waits
		delay, preferred = DurationValue(0), nil
	}
	joins := !s.Facts.Batching || serving.Dynamic         // a candidate that does not batch has nothing to join
	inFlight := load.Concurrency * max(load.BatchSize, 1) // inferences; 0 in an open loop
	// A preferred size below what is in flight ends a batch that could have grown.
	isReached := slices.ContainsFunc(preferred, func(size int) bool { return size < inFlight })
	wait, err := delay.Duration()
	if inFlight > 0 && batch >= inFlight && joins && !isReached && err == nil && wait == 0 {
		return "all in one batch"
	}
	text := string(delay) // of one that is not known, or no duration
	if err == nil {
		text = wait.String()
	}
	return fmt.Sprintf("batch=%d delay=%s preferred=%v joins=%t", batch, text, preferred, joins)
}
