package analyze

import (
	"math"
	"time"

	"tuner/measure"
	"tuner/search"
)

// CourseStep is a trial as a point of the campaign's course. What is known of its configuration at its load from all trials is in the
// configuration's point there.
type CourseStep struct {
	Name    string // of the configuration
	Load    measure.Load
	Phase   search.Phase
	Elapsed time.Duration // from the campaign's start to the end of the trial
	Failed  bool
	Score   float64 // of the goal's objective on log scale, higher is better, by the trial's own windows alone; not a number without one
}

// course lists the trials in the order in which they were made.
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
