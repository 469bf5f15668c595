package guided

import "tuner/search"

// middle is the middle of a trial's windows, which last so many seconds together, in the campaign; s. Those of a turn block have the others' windows
// between them, and tell themselves when they were.
func middle(e search.Event, seconds float64) float64 {
	windows := e.Measurement.Windows
	if e.Trial.Block == 0 || len(windows) == 0 {
		return e.Elapsed.Seconds() - seconds/2
	}
	sum := 0.0
	for _, w := range windows {
		sum += (w.Start + w.Duration/2).Seconds()
	}
	return sum / float64(len(windows))
}
