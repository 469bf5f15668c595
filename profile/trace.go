package profile

import (
	"fmt"
	"time"

	"tuner/measure/arrivals"
	"tuner/spec"
)

// traceOf reads the trace that a profile replays; nil without one.
func traceOf(p spec.Profile) (*arrivals.Trace, error) {
	if p.Load.Arrivals.Kind != arrivals.TraceKind {
		return nil, nil
	}
	trace, err := arrivals.ReadTrace(p.Load.Arrivals.File)
	if err != nil {
		return nil, fmt.Errorf("%s: load.arrivals.trace: %w", p.Path, err)
	}
	return &trace, nil
}

// mostOfTrace is the number of requests of a trace that the journal keeps, for the simulation of the
// queue. It makes 60 kB, and a simulation of a few ms.
const mostOfTrace = 10_000

// sampled returns the trace as the journal keeps it; nil without one.
func sampled(trace *arrivals.Trace) *arrivals.Trace {
	if trace == nil {
		return nil
	}
	sample := trace.Sample(mostOfTrace)
	return &sample
}

// Arrivals returns when the requests of a rate arrive, with the whole trace.
func (s Subject) Arrivals(of arrivals.Pattern) arrivals.Pattern {
	of.Trace = s.Trace
	return of
}

// windowsPerBudget is the least number of windows for which a campaign or a gate needs time.
const windowsPerBudget = 10

// CheckPeriod reports arrivals whose windows are too long for a budget. path is the file, and rate
// the lowest mean rate in requests/s. The error is an InputError.
func CheckPeriod(path string, p arrivals.Pattern, rate float64, budget time.Duration) error {
	period := p.Period(rate)
	if budget <= 0 || period*windowsPerBudget <= budget {
		return nil
	}
	return &InputError{fmt.Errorf("%s: load.arrivals: a window lasts a whole period, %v at %g requests/s, and the budget of %v has no room for %d of them; "+
		"cut a shorter trace (`tuner perf record --for`), choose a higher rate, or a longer budget",
		path, period.Round(time.Millisecond), rate, budget, windowsPerBudget)}
}
