package search

import "time"

// Middle returns the middle of a trial's windows, since the campaign's start. It is the mean over
// the windows, since the windows of a turn block alternate with the others'. A journal of an
// earlier version lacks their starts. They then count as the time before the trial's end.
func (e Event) Middle() time.Duration {
	var middles, total time.Duration
	windows := e.Measurement.Whole().Windows
	for _, w := range windows {
		middles += w.Start + w.Duration/2
		total += w.Duration
	}
	n := time.Duration(len(windows))
	if n == 0 || windows[n-1].Start == 0 {
		return e.Elapsed - total/2
	}
	return middles / n
}
