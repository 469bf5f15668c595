package search

import "time"

// Guesses for parts of a trial that have not happened yet. The first trial that has one replaces it.
const (
	GuessedLaunch      = 2 * time.Second
	GuessedReconfigure = 500 * time.Millisecond
	GuessedWarmUp      = 500 * time.Millisecond
)

// MostWindows is how many windows a launch is used for at most. A dearer launch is worth more of them
// (Kalibera and Jones, 2013: repeat most where the costs are least), but windows of one launch do not show
// what launches differ by.
const MostWindows = 3
