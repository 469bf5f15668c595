package load

import (
	"math"

	"tuner/measure"
	"tuner/measure/stats"
)

// Bounds of the flags (docs/design/measurement.md).
const (
	offBalance      = 0.03 // by how much the requests in flight may differ from the concurrency
	mostLate        = 0.01 // of the requests
	mostSendDelay   = 0.01 // open loop, medians: of the latency
	mostTurnaround  = 0.05 // closed loop, means: of the cycle
	mostGrowth      = 0.10 // of the scheduled requests
	mostCorrelation = 0.5  // of sub-windows' rates, lag 1
	rates           = 50   // of the latest sub-windows, that are looked at for that: 20 of white noise reach 0.5 once in a hundred times
)

// flags tells what the load generator's own figures say against the last of the windows. concurrency is that of a closed loop, 0 for an
// open one, of which Little's law says nothing: its number in flight is not given.
func flags(windows []measure.Window, concurrency int, steady bool) []measure.Flag {
	w := windows[len(windows)-1]
	var flags []measure.Flag
	flag := func(f measure.Flag, holds bool) {
		if holds {
			flags = append(flags, f)
		}
	}
	flag(measure.FlagErrors, w.Errors > 0)
	flag(measure.FlagTimeout, w.TimedOut > 0)
	flag(measure.FlagUnsteady, !steady)
	flag(measure.FlagCorrelated, isCorrelated(windows))
	if concurrency > 0 {
		flag(measure.FlagLittle, math.Abs(w.InFlight/float64(concurrency)-1) > offBalance)
		flag(measure.FlagSendDelay, isSlowToSend(w))
		return flags
	}
	flag(measure.FlagLate, isLate(w))
	flag(measure.FlagDropped, w.Dropped > 0)
	flag(measure.FlagBacklog, hasBacklog(w))
	return flags
}

// isSlowToSend says of a closed loop that the time from an answer to the next sending is a good part of the cycle.
func isSlowToSend(w measure.Window) bool {
	delay, latency := w.SendDelay.Mean().Seconds(), meanLatency(w)
	return latency > 0 && delay > mostTurnaround*(delay+latency)
}

func meanLatency(w measure.Window) float64 {
	sum := 0.0
	for _, s := range w.Sub {
		sum += s.Sum.Seconds()
	}
	return sum / float64(max(1, w.Requests))
}

// isLate says of an open loop that requests did not leave when they were due.
func isLate(w measure.Window) bool {
	if w.Requests == 0 {
		return false
	}
	var all []measure.Histogram
	for _, s := range w.Sub {
		all = append(all, s.Latency)
	}
	delay, latency := w.SendDelay.Quantile(0.5).Seconds(), measure.Merge(all...).Quantile(0.5).Seconds()
	return float64(w.Late) > mostLate*float64(w.Requests) || delay > mostSendDelay*latency
}

// hasBacklog says that the requests that are due and not answered grew in number during the window, by a good part of those that were
// scheduled, and by more than chance lets them: the number of scheduled ones scatters by its root.
func hasBacklog(w measure.Window) bool {
	scheduled := float64(w.Scheduled)
	growth := scheduled - float64(w.Requests+w.Errors+w.Dropped)
	return growth > max(mostGrowth*scheduled, 2*math.Sqrt(scheduled))
}

// isCorrelated says that the rates of the latest sub-windows follow each other.
func isCorrelated(windows []measure.Window) bool {
	var series []float64
	for i := len(windows) - 1; i >= 0 && len(series) < rates; i-- {
		sub := windows[i].Sub
		for j := len(sub) - 1; j >= 0; j-- { // backwards: the autocorrelation is the same
			series = append(series, float64(sub[j].Requests)/sub[j].Duration.Seconds())
		}
	}
	return len(series) >= rates && stats.Autocorrelation(series) > mostCorrelation
}
