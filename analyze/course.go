package analyze

import (
	"time"

	"tuner/measure"
	"tuner/search"
)

// CourseStep is a trial as a point of the campaign's course. Its figures are in the configuration's point at the load.
type CourseStep struct {
	Name    string // of the configuration
	Load    measure.Load
	Phase   search.Phase
	Elapsed time.Duration // from the campaign's start to the end of the trial
	Failed  bool
}

// course lists the trials in the order in which they were made.
func course(events []search.Event, configs []Config) []CourseStep {
	names := map[string]string{}
	for _, c := range configs {
		names[c.Candidate.Key()] = c.Name
	}
	list := make([]CourseStep, len(events))
	for i, e := range events {
		list[i] = CourseStep{names[e.Trial.Candidate.Key()], e.Trial.Load, e.Trial.Phase, e.Elapsed, e.Measurement.Failure != nil}
	}
	return list
}
