package footprint

import (
	"slices"

	"tuner/measure"
	"tuner/search"
)

// Process is the running engine process of a campaign, reconstructed from the trials. It keeps the
// memory of its largest batches, so its figure is too large for a configuration with smaller
// batches.
type Process struct {
	Pool  string // key; "" without a running process
	Batch int    // largest batch that it may have executed

	last   measure.Measurement
	block  int       // of its trial; 0: measured alone
	beside []Process // of the other trials of the block: they run until the next trial, which may take one of them
}

// During returns the process of an event's trial, before the trial.
func (p Process) During(e search.Event) Process {
	if e.Trial.Fresh || e.Measurement.Times.Launch > 0 {
		return Process{Pool: e.Trial.Candidate.PoolKey()}
	}
	return p.of(e.Trial.Candidate)
}

// of returns the running process of a candidate's pool: of several that with the largest batches, without one a new one.
func (p Process) of(c search.Candidate) Process {
	found := Process{Pool: c.PoolKey()}
	for _, running := range append([]Process{p}, p.beside...) {
		if running.Pool == found.Pool && running.Batch >= found.Batch {
			found = running
		}
	}
	return found
}

// After returns the running process after an event.
func (p Process) After(e search.Event, s search.Space) Process {
	m, now := e.Measurement, p.During(e)
	switch {
	case m.Failure == nil:
		now.Batch, now.last = max(now.Batch, largest(e, s)), m
	case m.Failure.Stage != measure.StageLoad:
		now = Process{}
	}
	now.block, now.beside = e.Trial.Block, nil
	if now.block > 0 && now.block == p.block {
		now.beside = append(p.beside[:len(p.beside):len(p.beside)], p)
	}
	return now
}

// largest returns the largest batch that the event's trial may have made. A service trial of one of
// several models counts as one of all: it has the candidate with the largest batches.
func largest(e search.Event, s search.Space) int {
	if e.Trial.Phase == search.PhaseService && e.Trial.Model == "" {
		largest := 0
		for i := range e.Measurement.Windows {
			size, _ := e.Trial.SizeOf(i)
			largest = max(largest, size)
		}
		return largest
	}
	return s.MaxBatch(e.Trial.Candidate)
}

// Burdens reports whether the goal depends on a candidate's memory and the process cannot show it,
// because it keeps memory of larger batches. If the process is within a limit, the candidate is
// too.
func (p Process) Burdens(c search.Candidate, s search.Settings) bool {
	p = p.of(c)
	if p.Batch <= s.Space.MaxBatch(c) {
		return false
	}
	return slices.ContainsFunc(s.Goal.Objective.Terms, func(t search.Term) bool { return search.IsMemory(t.Metric) }) ||
		slices.ContainsFunc(s.Goal.Constraints, p.isInDoubt)
}

// isInDoubt reports whether the process's memory leaves open if a configuration with smaller
// batches satisfies a constraint.
func (p Process) isInDoubt(c search.Constraint) bool {
	if !search.IsMemory(c.Metric) {
		return false
	}
	bytes, known := p.last.Value(c.Metric)
	return c.Min != nil || !known || bytes > *c.Max
}
