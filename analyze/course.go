package analyze

import (
	"math"

	"tuner/measure"
	"tuner/search"
)

// CourseStep is one trial in the campaign's course. The configuration's point at that load has the
// estimate from all trials.
type CourseStep struct {
	Name    string // of the configuration
	Ordinal int    // of the trial, from 1
	Event   search.Event
	Score   float64 // the objective on log scale from the trial's own windows, higher is better; NaN without one
}

// Sample returns the figures of the trial's own windows. It returns false for a failed trial.
func (s CourseStep) Sample(goal search.Goal) (Sample, bool) {
	m := s.Event.Measurement
	if m.Failure != nil || len(m.Windows) == 0 {
		return Sample{}, false
	}
	return newSample([]measure.Measurement{m}, s.Event.Trial.Load, goal, nil), true
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
		list[i] = CourseStep{names[e.Trial.Candidate.Key()], i + 1, e, score}
	}
	return list
}
