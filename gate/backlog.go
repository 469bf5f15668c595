package gate

import "math"

// mostUnanswered is the share of an open loop's requests that may stay without an answer: the share
// that p99 ignores too.
const mostUnanswered = 0.01

// hasBacklog reports whether the candidate cannot keep up with the rate of an open loop. It counts
// the requests of all windows that were due and not answered. Their number must exceed the allowed
// share by more than chance: the number of due requests scatters by its root.
//
// A stall also leaves a backlog in its window (measure.FlagBacklog), but the next window has the
// late answers. Only a growing queue adds up from launch to launch, even if each window has little
// of it.
func hasBacklog(pairs []Pair) bool {
	scheduled, ended := 0, 0
	for _, p := range pairs {
		for _, w := range p.Candidate.Windows {
			scheduled, ended = scheduled+w.Scheduled, ended+w.Requests+w.Errors
		}
	}
	due := float64(scheduled)
	return due-float64(ended) > max(mostUnanswered*due, 2*math.Sqrt(due))
}
