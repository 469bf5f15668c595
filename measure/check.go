package measure

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Check refuses figures that no measurement can have. Without it a damaged or edited file might
// win.
func (m Measurement) Check() error {
	if m.Launch < 0 || m.Memory < 0 || m.Footprint.Batch < 0 || m.Footprint.Bytes < 0 {
		return errors.New("a launch or a memory is negative")
	}
	if m.Scale < 0 {
		return errors.New("a scale is negative")
	}
	t := m.Times
	if min(t.Launch, t.Reconfigure, t.WarmUp, t.Windows) < 0 {
		return errors.New("a time is negative")
	}
	for i := range m.Windows {
		if err := m.Windows[i].check(); err != nil {
			return fmt.Errorf("window %d: %w", i+1, err)
		}
	}
	return nil
}

// Lasted returns the duration of all windows together. Windows of several models between the same
// edges count once. A sum that overflows becomes the largest duration.
func (m Measurement) Lasted() time.Duration {
	m = m.Whole()
	var sum time.Duration
	for i := range m.Windows {
		if sum += m.Windows[i].Duration; sum < 0 {
			return math.MaxInt64
		}
	}
	return sum
}

// check refuses figures that the load generator, which has one clock, cannot have counted. It
// accepts any figures of servers and of the system's counters: these may restart at any time.
func (w *Window) check() error {
	switch {
	case w.Start < 0 || w.Duration < 0:
		return errors.New("its start or its duration is negative")
	case w.Duration == 0 && w.Requests > 0:
		return fmt.Errorf("it has %d requests, but its duration is 0", w.Requests)
	case min(w.Requests, w.Inferences, w.Errors, w.Scheduled, w.Late, w.Dropped, w.TimedOut, w.Responses) < 0:
		return errors.New("one of its counts is negative")
	// all requests have the same number of inferences
	case w.Inferences > 0 && (w.Requests == 0 || w.Inferences%w.Requests != 0):
		return fmt.Errorf("it has %d inferences for %d requests, which is not a whole number for each", w.Inferences, w.Requests)
	case w.TimedOut > w.Errors:
		return fmt.Errorf("%d requests timed out, and %d failed", w.TimedOut, w.Errors)
	case w.InFlight < 0:
		return errors.New("its requests in flight are negative")
	}
	for i := range w.Sub {
		s := &w.Sub[i]
		if s.Requests < 0 || s.Requests > w.Requests || s.Duration < 0 || s.Duration > w.Duration || s.Sum < 0 {
			return fmt.Errorf("its sub-window %d has a negative figure, or a larger one than the window", i+1)
		}
	}
	return nil
}
