package search

import (
	"fmt"
	"time"
)

// clockSlack is by how much a campaign's clock and that of its load windows may differ.
const clockSlack = time.Minute

// Check refuses an event that no trial has: package journal asks it of what it writes and reads.
func (e Event) Check() error {
	if err := e.Measurement.Check(); err != nil {
		return fmt.Errorf("trial of %s at %s: %w", e.Trial.Candidate, e.Trial.Load, err)
	}
	if lasted := e.Measurement.Lasted(); e.Elapsed < 0 || lasted-clockSlack > e.Elapsed {
		return fmt.Errorf("trial of %s at %s: its windows took %v, and the campaign %v until its end", e.Trial.Candidate, e.Trial.Load, lasted, e.Elapsed)
	}
	return e.Trial.Load.Check()
}

// Check refuses an earlier campaign with such an event.
func (e Earlier) Check() error {
	for _, event := range e.Events {
		if err := event.Check(); err != nil {
			return fmt.Errorf("earlier campaign %q: %w", e.From, err)
		}
	}
	return nil
}
