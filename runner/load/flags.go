package load

import (
	"math"

	"tuner/measure"
	"tuner/measure/stats"
)

// Bounds of the flags (docs/design/measurement.md).
const (
	offBalance    = 0.03 // difference of the requests in flight from the concurrency, as a share
	mostLate      = 0.01 // share of the requests
	mostSendDelay = 0.01 // open loop: median send delay as a share of the median latency
	// closed loop: mean time from answer to next sending as a share of the mean cycle
	mostTurnaround  = 0.05
	mostGrowth      = 0.10 // share of the scheduled requests
	mostCorrelation = 0.5  // autocorrelation at lag 1 of the sub-windows' rates
	// number of latest sub-windows for that; 20 values of white noise reach 0.5 in one of a hundred
	// cases
	rates = 50
)

// flags returns the flags of the last window that follow from the load generator's own figures.
// concurrency is that of a closed loop; it is 0 for an open loop. There Little's law has no
// meaning, since the number in flight is not given.
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
	flag(measure.FlagCorrelated, w.Periods == 0 && isCorrelated(windows))
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

// isSlowToSend reports whether the time from an answer to the next sending is a large part of a
// closed loop's cycle.
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

// isLate reports whether requests of an open loop were sent later than they were due.
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

// hasBacklog reports whether the number of requests due and not answered grew during the window.
// The growth must be a large part of the scheduled requests. It must also exceed chance: the number
// of scheduled requests scatters by its square root.
func hasBacklog(w measure.Window) bool {
	scheduled := float64(w.Scheduled)
	growth := scheduled - float64(w.Requests+w.Errors+w.Dropped)
	return growth > max(mostGrowth*scheduled, 2*math.Sqrt(scheduled))
}

// isCorrelated reports whether the rates of the latest sub-windows are autocorrelated.
func isCorrelated(windows []measure.Window) bool {
	var series []float64
	for i := len(windows) - 1; i >= 0 && len(series) < rates; i-- {
		sub := windows[i].Sub
		for j := len(sub) - 1; j >= 0; j-- { // backwards, which gives the same autocorrelation
			series = append(series, float64(sub[j].Requests)/sub[j].Duration.Seconds())
		}
	}
	return len(series) >= rates && stats.Autocorrelation(series) > mostCorrelation
}
