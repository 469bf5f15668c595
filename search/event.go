package search

import "time"

// Middle is the instant in the middle of a trial's windows, since the campaign's start: the mean of theirs,
// since those of a turn block have the others' windows between them. A journal of an earlier version does
// not tell their starts; they are then taken as the time before the trial's end.
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
