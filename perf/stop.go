package perf

import (
	"cmp"
	"slices"
	"time"

	"tuner/measure"
	"tuner/measure/stats"
)

// Bounds of the stop rules (docs/design/measurement.md).
const (
	// fewestWindows is the number of windows that the rule of precision needs: 50 sub-windows.
	// Intervals from fewer are too narrow if the sub-windows are correlated.
	fewestWindows = 5
	// fewestEffective is the number of independent values that the sub-windows must be worth, for
	// the same reason.
	fewestEffective = 30
	// agreeing is the number of windows in a row that must agree by the rule of stability, as in
	// perf_analyzer.
	agreeing = 3
)

// judge decides after a window whether the level has been measured for long enough. v is the
// verdict if so, and also if the load ends here for another reason.
func (s Settings) judge(windows []measure.Window) (v Verdict, done bool) {
	if s.Stop.Rule == RuleStability {
		return s.judgeStability(windows)
	}
	return s.judgePrecision(windows)
}

func (s Settings) judgePrecision(windows []measure.Window) (Verdict, bool) {
	m := measure.Measurement{Windows: windows}
	first, last := windows[0], windows[len(windows)-1]
	if len(windows) >= fewestWindows {
		if s.isPrecise(m) {
			return VerdictPrecise, true
		}
		if s.limitOf(m) == LimitMissed {
			return VerdictOverLimit, true
		}
	}
	return VerdictBudget, last.Start+last.Duration-first.Start >= s.Stop.Budget
}

// isPrecise reports whether the judged figures have the wanted precision. These are the latency,
// and in a closed loop the throughput. In an open loop the schedule sets the throughput.
func (s Settings) isPrecise(m measure.Measurement) bool {
	latency, ok := s.Latency(m)
	if !ok || relativeWidth(latency) > s.Stop.Precision || !s.isBounded(m) {
		return false
	}
	rates, latencies := s.series(m)
	if stats.EffectiveCount(latencies) < fewestEffective {
		return false
	}
	if s.Mode != ModeConcurrency {
		return true
	}
	throughput, ok := m.Estimate(measure.Throughput)
	return ok && relativeWidth(throughput) <= s.Stop.Precision && stats.EffectiveCount(rates) >= fewestEffective
}

// isBounded reports whether there were enough requests for an upper bound of the judged latency.
func (s Settings) isBounded(m measure.Measurement) bool {
	return s.Percentile == 0 || m.Bounded(s.quantile())
}

// series returns the rate of each sub-window, and its figure for the judged latency: the mean, or
// the share of requests within the percentile.
func (s Settings) series(m measure.Measurement) (rates, latencies []float64) {
	wanted, _ := s.Latency(m)
	for _, w := range m.Windows {
		for _, sub := range w.Sub {
			length := cmp.Or(sub.Duration, w.Duration/time.Duration(len(w.Sub)))
			rates = append(rates, float64(sub.Requests)/length.Seconds())
			switch {
			case sub.Requests == 0:
			case s.Percentile == 0:
				latencies = append(latencies, sub.Sum.Seconds()/float64(sub.Requests))
			default:
				within := sub.Latency.CountAtMost(time.Duration(wanted.Value * float64(time.Second)))
				latencies = append(latencies, float64(within)/float64(sub.Requests))
			}
		}
	}
	return rates, latencies
}

// judgeStability is perf_analyzer's rule. The largest throughput and latency of the last three
// windows may exceed the least by Stop.Stability at most. The values are corrected for the CPU time
// that others withheld. For asynchronous calls, if no further window may follow, only the
// throughput counts.
func (s Settings) judgeStability(windows []measure.Window) (Verdict, bool) {
	last := len(windows) >= s.Stop.Trials
	if len(windows) < agreeing {
		return VerdictUnjudged, last
	}
	recent := windows[len(windows)-agreeing:]
	rates, latencies := s.agree(windows)
	switch {
	case rates && (latencies || last && s.Async):
		return VerdictStable, true
	case s.limitOf(measure.Measurement{Windows: recent}) == LimitMissed:
		return VerdictOverLimit, true
	}
	return VerdictUnstable, last
}

// agree reports whether the last three windows agree in throughput and in latency. A window without
// an answer agrees in neither. The effect of withheld CPU time is learned from all windows with
// answered requests.
func (s Settings) agree(windows []measure.Window) (inRate, inLatency bool) {
	var rates, latencies []float64
	var served []measure.Window
	for i, w := range windows {
		m := measure.Measurement{Windows: []measure.Window{w}}
		rate, _ := m.Estimate(measure.Throughput)
		latency, ok := s.Latency(m)
		switch {
		case ok:
			served = append(served, w)
			rates, latencies = append(rates, rate.Value), append(latencies, latency.Value)
		case i >= len(windows)-agreeing:
			return false, false
		}
	}
	const lost = -1                // CPU time taken by others is lost, and makes latencies longer
	if s.Mode == ModeConcurrency { // in an open loop the schedule sets the throughput
		rates = evened(served, rates, lost)
	}
	latencies = evened(served, latencies, -lost)
	rates, latencies = rates[len(rates)-agreeing:], latencies[len(latencies)-agreeing:]
	within := func(values []float64) bool { return slices.Max(values) <= slices.Min(values)*(1+s.Stop.Stability) }
	return within(rates), within(latencies)
}

// counting returns the windows that a level's figures come from.
func (s Settings) counting(windows []measure.Window) []measure.Window {
	if s.RequestCount == 0 && s.Stop.Rule == RuleStability && len(windows) > agreeing {
		return windows[len(windows)-agreeing:]
	}
	return windows
}

// limitOf returns the relation of the judged latency to the limit. Requests that failed or were
// dropped have no latency. If they are too many, the load misses the limit.
func (s Settings) limitOf(m measure.Measurement) Limit {
	latency, served := s.Latency(m)
	limit := s.LatencyLimit.Seconds()
	lost, _ := m.Estimate(measure.ErrorRate)
	switch {
	case limit == 0:
		return ""
	case lost.Value > measure.MostErrors:
		return LimitMissed
	case !served:
		return ""
	case latency.Lo > limit:
		return LimitMissed
	case latency.Value > limit:
		return LimitLikelyMissed
	case latency.Hi > limit || !s.isBounded(m):
		return LimitLikelyMet
	}
	return LimitMet
}

func (s Settings) quantile() float64 { return float64(s.Percentile) / 100 }

// relativeWidth returns half the width of an interval, relative to the value.
func relativeWidth(e measure.Estimate) float64 {
	if e.Value == 0 {
		return 0
	}
	return (e.Hi - e.Lo) / 2 / e.Value
}
