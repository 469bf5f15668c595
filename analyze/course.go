package analyze

import (
	"math"
	"time"

	"tuner/measure"
	"tuner/search"
)

// CourseStep is one trial in the campaign's course. The configuration's point at that load has the
// estimate from all trials.
type CourseStep struct {
	Name    string // of the configuration
	Load    measure.Load
	Phase   search.Phase
	Elapsed time.Duration // from the campaign's start to the end of the trial
	Failed  bool
	Score   float64 // the objective on log scale from the trial's own windows, higher is better; NaN without one
}

// course lists the trials in order of time.
func course(events []search.Event, configs []Config, goal search.Goal) []CourseStep {
	names := map[string]string{}
	for _, c := range configs {
		names[c.Candidate.Key()] = c.Name
	}
	list := make([]CourseStep, len(events))
	for i, e := range events {
		score, ok := goal.Score(e.Measurement)
		if !ok || e.Measurement.Failure != nil {
			score = math.NaN()
		}
		list[i] = CourseStep{names[e.Trial.Candidate.Key()], e.Trial.Load, e.Trial.Phase, e.Elapsed, e.Measurement.Failure != nil, score}
	}
	return list
}
