package search

import (
	"fmt"
	"slices"
	"time"

	"tuner/measure"
)

// clockSlack is the largest difference between a campaign's clock and the clock of its load
// windows.
const clockSlack = time.Minute

// Check returns an error for an event that no trial can have. Package journal checks all events
// that it writes and reads.
func (e Event) Check() error {
	if err := e.Measurement.Check(); err != nil {
		return fmt.Errorf("trial of %s at %s: %w", e.Trial.Candidate, e.Trial.Load, err)
	}
	if lasted := e.Measurement.Lasted(); e.Elapsed < 0 || lasted-clockSlack > e.Elapsed {
		return fmt.Errorf("trial of %s at %s: its windows took %v, but the campaign only %v until its end", e.Trial.Candidate, e.Trial.Load, lasted, e.Elapsed)
	}
	for i := range e.Measurement.Windows {
		w := &e.Measurement.Windows[i]
		if isKnown := e.Trial.Load.Of(w.Model) != (measure.Load{}); (w.Model != "") == e.Trial.Load.Mix.IsZero() || !isKnown && w.Model != "" {
			return fmt.Errorf("trial of %s at %s: it has a window of model %q", e.Trial.Candidate, e.Trial.Load, w.Model)
		}
		if batch := w.Inferences / max(1, w.Requests); batch > 0 && !e.Trial.hasBatch(w.Model, batch) {
			return fmt.Errorf("trial of %s at %s: its requests have %d inferences each", e.Trial.Candidate, e.Trial.Load, batch)
		}
	}
	return e.Trial.Load.Check()
}

// hasBatch reports whether the trial's requests to a model may have this number of inferences each.
func (t Trial) hasBatch(model string, size int) bool {
	load := t.Load.Of(model)
	return size == load.BatchSize || slices.Contains(t.Sizes, size) || load.BatchSize == 0 && t.Sizes == nil
}

// Check returns an error for an earlier campaign with such an event.
func (e Earlier) Check() error {
	for _, event := range e.Events {
		if err := event.Check(); err != nil {
			return fmt.Errorf("earlier campaign %q: %w", e.From, err)
		}
	}
	return nil
}
