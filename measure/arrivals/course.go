package arrivals

import (
	"math"
	"time"
)

// Least numbers of requests in a course: enough for a 99th percentile, and more where the distances
// vary much.
const (
	leastOfCourse = 2000
	leastOfGamma  = 10_000
)

// Course returns a schedule for a simulation, and the number of requests that stand for all of it:
// those of whole periods, at most the given number. Of a longer period the schedule has parts that are
// evenly spread over it, as a trace's sample has (Trace.Sample).
func (p Pattern) Course(rate float64, seed uint64, most int) (Schedule, int, error) {
	s, err := p.Schedule(rate, seed)
	if err != nil {
		return nil, 0, err
	}
	if !p.HasPeriod() {
		return s, min(leastOfGamma, most), nil
	}
	n := max(1, int(math.Round(rate*p.Period(rate).Seconds())))
	if p.Of() == TraceKind {
		n = len(p.Trace.Gaps)
	}
	if n <= most {
		return s, n * max(1, (leastOfCourse+n-1)/n), nil
	}
	gaps := make([]time.Duration, n)
	last := time.Duration(0)
	for i := range gaps {
		at := s.Next()
		gaps[i], last = at-last, at
	}
	parts := Trace{Requests: n, Gaps: gaps}.Sample(most)
	return &replay{gaps: parts.Gaps, scale: 1}, len(parts.Gaps), nil
}
