package gate

import (
	"tuner/measure"
)

// withheldIn returns the CPU time that others withheld from one side of a pair, for each of its
// figures (see figures).
//
// A side is expected to use at most as much CPU time as in its most active window of the pair. A
// side that leaves cores idle loses nothing if neighbours use them. Without this bound, a candidate
// that has lost its threads would look as good as the baseline beside a neighbour. The reason is
// that the neighbour takes time only from the baseline.
func withheldIn(metric measure.Metric, of measure.Measurement) []float64 {
	metric, of = own(metric, of)
	usable := mostUsed(of.Windows)
	if isOfAll(metric, of) {
		return []float64{of.WithheldOf(0, usable)}
	}
	var list []float64
	for _, w := range of.Windows {
		list = append(list, w.WithheldOf(0, usable))
	}
	return list
}

// mostUsed returns the highest CPU use of engine and clients in a window, in cores; 0 unknown.
func mostUsed(windows []measure.Window) float64 {
	most := 0.0
	for _, w := range windows {
		if w.Duration > 0 {
			most = max(most, (w.EngineCPU+w.ClientCPU).Seconds()/w.Duration.Seconds())
		}
	}
	return most
}
