package search

import "time"

// Guesses for durations of a trial that have not been measured yet. The first trial with a
// measurement replaces them.
const (
	GuessedLaunch      = 2 * time.Second
	GuessedReconfigure = 500 * time.Millisecond
	GuessedWarmUp      = 500 * time.Millisecond
)

// MostWindows is the largest number of windows per launch. A more expensive launch deserves more
// windows (Kalibera and Jones, 2013: repeat most where the costs are least). But the windows of one
// launch do not show the variation between launches.
const MostWindows = 3
