package gate

import "math"

// mostUnanswered is the share of an open loop's requests that may be left without an answer: as many as a p99 leaves out.
const mostUnanswered = 0.01

// hasBacklog says of an open loop that the candidate does not keep up with the rate: of the requests that were due in all windows more were left
// without an answer than may be, and than chance leaves, since the number of those that are due scatters by its root. A stall leaves a backlog in a
// window, too (measure.FlagBacklog), but the next window has the answers to it, late as they are. Only a queue that keeps growing adds up from launch
// to launch, however little it is in a window.
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
