package profile

import (
	"fmt"
	"time"

	"tuner/measure/arrivals"
	"tuner/model/mix"
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

// sizesOf returns the sizes of a trace, each with the number of its requests.
func sizesOf(trace *arrivals.Trace) ([]mix.Size, error) {
	if trace == nil || trace.Sizes == nil {
		return nil, fmt.Errorf("sizes: the trace of load.arrivals has no column %q; `tuner perf record --size FIELD` writes it", arrivals.SizeColumn)
	}
	counts := map[int64]int{}
	for _, size := range trace.Sizes {
		counts[size]++
	}
	var sizes []mix.Size
	for size, n := range counts {
		sizes = append(sizes, mix.Size{Size: size, Weight: float64(n)})
	}
	return sizes, nil
}

// kindsOf returns the kind of each request of a trace, in the mix of its sizes: the bin of its size.
// Bins and kinds have the same order, since a larger size of a dimension has more elements.
func kindsOf(trace arrivals.Trace) []int {
	sizes, _ := sizesOf(&trace) // the mix was made of them
	bin := mix.BinOf(sizes)
	kinds := make([]int, len(trace.Sizes))
	for i, size := range trace.Sizes {
		kinds[i] = bin(size)
	}
	return kinds
}

// Order returns which of a load's requests is sent at each instant of the trace, so that each has the
// size that was recorded. n is the number of requests that Requests or Padded made for the profile.
// nil: the requests are sent in turn.
func (s Subject) Order(p spec.Profile, n int) []int {
	if s.Trace == nil || s.Trace.Kinds == nil {
		return nil
	}
	ofKind := make([][]int, len(s.Mix))
	for i, kind := range s.Mix.Deal(n, p.Search.Seed) {
		ofKind[kind] = append(ofKind[kind], i)
	}
	for kind := range ofKind { // a kind too rare to have a request takes those of the next larger one
		for larger := kind; len(ofKind[kind]) == 0; larger = (larger + 1) % len(ofKind) {
			ofKind[kind] = ofKind[larger]
		}
	}
	next := make([]int, len(ofKind))
	order := make([]int, len(s.Trace.Kinds))
	for i, kind := range s.Trace.Kinds {
		order[i] = ofKind[kind][next[kind]%len(ofKind[kind])]
		next[kind]++
	}
	return order
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
