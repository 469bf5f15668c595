package search

import (
	"slices"

	"tuner/measure"
)

// Process is the engine process that runs in a campaign, as far as the trials tell. It keeps the memory that its largest batches took, so that it tells
// too much of a configuration with smaller ones.
type Process struct {
	Pool  string // key; "" while none runs
	Batch int    // the largest that it may have been given

	last measure.Measurement
}

// During returns the process in which an event's trial ran, as it was before.
func (p Process) During(e Event) Process {
	if pool := e.Trial.Candidate.PoolKey(); p.Pool != pool || e.Trial.Fresh || e.Measurement.Times.Launch > 0 {
		return Process{Pool: pool}
	}
	return p
}

// After returns the process that runs after an event.
func (p Process) After(e Event, s Space) Process {
	m := e.Measurement
	if m.Failure != nil && m.Failure.Stage != measure.StageLoad {
		return Process{}
	}
	p = p.During(e)
	if m.Failure == nil {
		p.Batch, p.last = max(p.Batch, e.largest(s)), m
	}
	return p
}

// largest is the largest batch that the event's trial may have made.
func (e Event) largest(s Space) int {
	if e.Trial.Phase == PhaseService {
		done := min(len(e.Measurement.Windows), len(e.Trial.Sizes))
		return slices.Max(append([]int{0}, e.Trial.Sizes[:done]...))
	}
	return s.MaxBatch(e.Trial.Candidate)
}

// Burdens reports whether the goal depends on a candidate's memory and the process cannot tell it, for what larger batches took. Where it keeps a limit
// all the same, so does the candidate.
func (p Process) Burdens(c Candidate, s Settings) bool {
	if p.Pool != c.PoolKey() || p.Batch <= s.Space.MaxBatch(c) {
		return false
	}
	return slices.ContainsFunc(s.Goal.Objective.Terms, func(t Term) bool { return isMemory(t.Metric) }) ||
		slices.ContainsFunc(s.Goal.Constraints, p.isInDoubt)
}

// isInDoubt reports whether what the process holds leaves open if a configuration with smaller batches is within a constraint.
func (p Process) isInDoubt(c Constraint) bool {
	if !isMemory(c.Metric) {
		return false
	}
	bytes, known := p.last.Value(c.Metric)
	return c.Min != nil || !known || bytes > *c.Max
}
