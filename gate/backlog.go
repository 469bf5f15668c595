package gate

import (
	"maps"
	"math"
	"slices"
)

// mostUnanswered is the share of an open loop's requests that may stay without an answer: the share
// that p99 ignores too.
const mostUnanswered = 0.01

// hasBacklog reports whether the candidate cannot keep up with the rate of an open loop of one of its models.
func hasBacklog(pairs []Pair) bool { return len(backlogged(pairs)) > 0 }

// backlogged lists the models whose rate the candidate cannot keep up with; "" for the only one. It counts
// the requests of all windows that were due and not answered. Their number must exceed the allowed
// share by more than chance: the number of due requests scatters by its root.
//
// A stall also leaves a backlog in its window (measure.FlagBacklog), but the next window has the
// late answers. Only a growing queue adds up from launch to launch, even if each window has little
// of it.
func backlogged(pairs []Pair) []string {
	scheduled, ended := map[string]int{}, map[string]int{}
	for _, p := range pairs {
		for _, w := range p.Candidate.Windows {
			scheduled[w.Model] += w.Scheduled
			ended[w.Model] += w.Requests + w.Errors
		}
	}
	var models []string
	for _, model := range slices.Sorted(maps.Keys(scheduled)) {
		due := float64(scheduled[model])
		if due-float64(ended[model]) > max(mostUnanswered*due, 2*math.Sqrt(due)) {
			models = append(models, model)
		}
	}
	return models
}
