package load

import (
	"slices"

	"tuner/measure"
)

// joinAll joins the windows in pairs once there are MostWindows, and doubles the length of later
// ones. So all windows keep equal lengths, and so do their slices. It reports whether it joined
// them.
func (g *group) joinAll() bool {
	most := g.windows.MostWindows
	if most == 0 || len(g.sessions[0].windows) < most {
		return false
	}
	for _, s := range g.sessions {
		s.join()
	}
	g.windows.Requests *= 2
	g.windows.Joined()
	return true
}

// join joins the windows of the session in pairs.
func (s *session) join() {
	var joined []measure.Window
	for pair := range slices.Chunk(s.windows, 2) {
		w := pair[0]
		if len(pair) == 2 {
			w = joinWindows(pair[0], pair[1])
		}
		joined = append(joined, w)
	}
	s.windows = joined
	if !s.current.grows {
		s.current.join()
	}
}

// joinWindows joins two adjacent windows of this package into one.
func joinWindows(a, b measure.Window) measure.Window {
	w := a
	w.Duration += b.Duration
	w.Periods += b.Periods
	w.Requests, w.Inferences = a.Requests+b.Requests, a.Inferences+b.Inferences
	w.Errors, w.TimedOut = a.Errors+b.Errors, a.TimedOut+b.TimedOut
	if a.FirstError == "" {
		w.FirstError = b.FirstError
	}
	w.Scheduled, w.Late, w.Dropped = a.Scheduled+b.Scheduled, a.Late+b.Late, a.Dropped+b.Dropped
	w.SendDelay = measure.Merge(a.SendDelay, b.SendDelay)
	w.InFlight = (a.InFlight*a.Duration.Seconds() + b.InFlight*b.Duration.Seconds()) / w.Duration.Seconds()
	if w.Responses = a.AllResponses() + b.AllResponses(); w.Responses == w.Requests {
		w.Responses = 0
	}
	w.Flags = slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.Flags, b.Flags))))
	w.Sub = nil
	for pair := range slices.Chunk(slices.Concat(a.Sub, b.Sub), 2) {
		sub := pair[0]
		if len(pair) == 2 {
			sub = joinSubWindows(pair[0], pair[1])
		}
		w.Sub = append(w.Sub, sub)
	}
	return w
}

func joinSubWindows(a, b measure.SubWindow) measure.SubWindow {
	return measure.SubWindow{
		Requests: a.Requests + b.Requests, Duration: a.Duration + b.Duration, Sum: a.Sum + b.Sum,
		Latency: measure.Merge(a.Latency, b.Latency), Service: measure.Merge(a.Service, b.Service),
	}
}
