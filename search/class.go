package search

import (
	"fmt"
	"slices"
	"strings"

	"tuner/measure"
)

// ClassKey identifies the server that a candidate of the space forms under a load. Candidates with
// equal keys are the same server there, so a measurement of one holds for the others.
//
// In a closed loop, two candidates of a pool are the same server under two conditions. Neither
// waits for more requests, and all requests in flight fit into the largest batch of either. The
// batcher then sends all waiting requests as soon as an instance is free, and the largest batch
// limits nothing. In an open loop the requests in flight are unlimited, so every batcher is its own
// class there.
func (s Space) ClassKey(c Candidate, load measure.Load) string {
	return s.PoolClass(c) + " " + s.batcherClass(c, load)
}

// PoolClass is the part of ClassKey that depends on the engine process, for all loads. Equivalent
// process settings have equal classes: a candidate may set a knob to the default's value.
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

// batcherClass is the part of ClassKey that depends on the batcher's knobs.
func (s Space) batcherClass(c Candidate, load measure.Load) string {
	if s.IsSeveral() {
		var parts []string
		for _, p := range s.Parts {
			parts = append(parts, p.Model+" "+p.Space.batcherClass(c.Of(p.Model), load.Of(p.Model)))
		}
		return strings.Join(parts, ", ")
	}
	padding := ""
	if p := s.Padding(c); p != NoPadding {
		padding = " padding=" + string(p)
	}
	serving, delay := s.Serving(c), s.Value(c, KnobMaxQueueDelay)
	batch, preferred := max(serving.MaxBatch, 1), slices.Sorted(slices.Values(serving.Preferred))
	if batch <= 1 { // a batch of one never waits
		delay, preferred = DurationValue(0), nil
	}
	joins := !s.Facts.Batching || serving.Dynamic         // a candidate without batching has nothing to join
	inFlight := load.Concurrency * max(load.BatchSize, 1) // inferences; 0 in an open loop
	// A preferred size below the requests in flight closes a batch that could have grown.
	isReached := slices.ContainsFunc(preferred, func(size int) bool { return size < inFlight })
	wait, err := delay.Duration()
	if inFlight > 0 && batch >= inFlight && joins && !isReached && err == nil && wait == 0 {
		return "all in one batch" + padding
	}
	text := string(delay) // used if the delay is unknown or not a duration
	if err == nil {
		text = wait.String()
	}
	return fmt.Sprintf("batch=%d delay=%s preferred=%v joins=%t", batch, text, preferred, joins) + padding
}
