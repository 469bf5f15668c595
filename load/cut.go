package load

import (
	"math"
	"time"

	"tuner/measure"
)

// slices per window
const subWindows = 10

// offBalance is by how much the requests in flight may differ from the concurrency (Little's law).
const offBalance = 0.03

// cut sorts the records into windows by when they ended, irrespective of when they were sent.
func (s *session) cut() ([]measure.Window, error) {
	windows := make([]measure.Window, len(s.edges)-1)
	for i := range windows {
		w, err := s.cutWindow(s.edges[i], s.edges[i+1])
		if err != nil {
			return nil, err
		}
		windows[i] = w
	}
	return windows, nil
}

// cutWindow makes the window from ≤ end < to.
func (s *session) cutWindow(from, to time.Duration) (measure.Window, error) {
	w := measure.Window{Start: from, Duration: to - from, FirstError: s.refusals.first(from, to)}
	var latencies [subWindows][]time.Duration
	var inFlight time.Duration // summed over the requests: how long each was in flight within the window
	for _, r := range s.records {
		inFlight += max(0, min(r.end, to)-max(r.end-r.latency, from))
		if r.end < from || to <= r.end {
			continue
		}
		switch r.outcome {
		case completed:
			w.Requests++
			i := int((r.end - from) * subWindows / w.Duration)
			latencies[i] = append(latencies[i], r.latency)
		case failed:
			w.Errors++
		case aborted: // the run ended, not the request
		}
	}
	w.Inferences = w.Requests * max(1, s.options.Load.BatchSize)
	for _, l := range latencies {
		h, err := measure.NewHistogram(l)
		if err != nil {
			return measure.Window{}, err
		}
		w.Sub = append(w.Sub, measure.SubWindow{Requests: len(l), Latency: h})
	}
	w.Flags = s.flags(w, inFlight)
	return w, nil
}

// flags tells what the records say against a window. The requests in flight are averaged over the window's time, which is
// what throughput × mean latency estimates, without the noise of the requests that straddle an edge.
func (s *session) flags(w measure.Window, inFlight time.Duration) []measure.Flag {
	var flags []measure.Flag
	balance := inFlight.Seconds() / w.Duration.Seconds() / float64(s.options.Load.Concurrency)
	if math.Abs(balance-1) > offBalance {
		flags = append(flags, measure.FlagLittle)
	}
	if w.Errors > 0 {
		flags = append(flags, measure.FlagErrors)
	}
	if !s.steady {
		flags = append(flags, measure.FlagUnsteady)
	}
	return flags
}
