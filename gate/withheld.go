package gate

import (
	"tuner/measure"
)

// withheldIn is what others withheld from one side of a pair, by figure (figures).
//
// A side is asked for no more than it used in its own window of the pair that used most: one that leaves cores idle leaves them to
// neighbours, who take nothing from it by that. Without this bound a candidate that has lost its threads would look as good beside
// a neighbour as the baseline, from which the neighbour takes.
func withheldIn(metric measure.Metric, of measure.Measurement) []float64 {
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

// mostUsed is the most CPU time that engine and clients used in one of the windows, in cores; 0 unknown.
func mostUsed(windows []measure.Window) float64 {
	most := 0.0
	for _, w := range windows {
		if w.Duration > 0 {
			most = max(most, (w.EngineCPU+w.ClientCPU).Seconds()/w.Duration.Seconds())
		}
	}
	return most
}
