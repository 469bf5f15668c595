package search

import "time"

// Middle returns the middle of a trial's windows, since the campaign's start. It is the mean over
// the windows, since the windows of a turn block alternate with the others'. A journal of an
// earlier version lacks their starts. They then count as the time before the trial's end.
func (e Event) Middle() time.Duration {
	var middles, total time.Duration
	for _, w := range e.Measurement.Windows {
		middles += w.Start + w.Duration/2
		total += w.Duration
	}
	n := time.Duration(len(e.Measurement.Windows))
	if n == 0 || e.Measurement.Windows[n-1].Start == 0 {
		return e.Elapsed - total/2
	}
	return middles / n
}
