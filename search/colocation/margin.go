package colocation

import (
	"math"
	"slices"

	"tuner/search/queuesim"
)

// margin is how far a model's latencies are beyond their limits, by the logarithm of its load: the
// largest ln(latency/limit) over its limits. It is predicted, and rises with the load.
//
// A server that is slower by the factor e^τ behaves as the predicted one at e^τ times the load, and all
// its times are e^τ times as long. So its margin is τ + m(load + τ), in logarithms. Interference, another
// machine's pace and a wrong service time are all of this form. One number, the slowdown τ, says for
// all loads what a trial at one load has shown.
type margin struct {
	at   []float64 // ln of the load, ascending
	logs []float64 // ascending
}

// steepest is the largest slope of a margin that is believed in. A simulation's is 20 and more near the
// capacity, where latencies grow without end. A trial's latencies grow less: its window ends. Where the
// slope is believed to be steeper than it is, a latency beyond the limit hardly moves the highest load,
// and trials at the wrong load confirm each other. Where it is believed to be flatter, they end on both
// sides of the limit.
const steepest = 4

// newMargin makes a margin from points in ascending order of the load. Noise that lets it fall is
// smoothed out, and its slope from the highest load is at most steepest.
func newMargin(at, logs []float64) margin {
	m := margin{at: at, logs: slices.Clone(logs)}
	for i := 1; i < len(m.logs); i++ {
		m.logs[i] = max(m.logs[i], m.logs[i-1])
	}
	if m.logs[0] > 0 {
		return m
	}
	limit := m.highest(0)
	for i, x := range m.at {
		if line := steepest * (x - limit); x > limit {
			m.logs[i] = min(m.logs[i], line)
		} else {
			m.logs[i] = max(m.logs[i], line)
		}
	}
	return m
}

// of returns the margin at the logarithm of a load.
func (m margin) of(load float64) float64 {
	last := len(m.at) - 1
	switch {
	case load <= m.at[0]:
		return m.logs[0]
	case load >= m.at[last]:
		return m.logs[last] + steepest*(load-m.at[last])
	}
	i, _ := slices.BinarySearch(m.at, load)
	return m.logs[i-1] + (m.logs[i]-m.logs[i-1])*(load-m.at[i-1])/(m.at[i]-m.at[i-1])
}

// slope returns the rise of the margin with the logarithm of the load.
func (m margin) slope(load float64) float64 {
	const step = 0.02
	return (m.of(load+step) - m.of(load-step)) / (2 * step)
}

// slowdown returns the τ with which the model has a margin at a load.
func (m margin) slowdown(load, log float64) float64 {
	return solve(-3, 3, func(t float64) float64 { return t + m.of(load+t) - log })
}

// most returns the largest slowdown with which the model keeps its limits at a load.
func (m margin) most(load float64) float64 { return m.slowdown(load, 0) }

// highest returns the logarithm of the highest load within the limits with a slowdown; −Inf if no load
// keeps them.
func (m margin) highest(slowdown float64) float64 {
	if m.logs[0]+slowdown > 0 {
		return math.Inf(-1)
	}
	last := len(m.at) - 1
	return solve(m.at[0], m.at[last]+1, func(u float64) float64 { return m.of(u) + slowdown }) - slowdown
}

// shifted returns the margin by the load times a factor, of the given logarithm.
func (m margin) shifted(log float64) margin {
	at := make([]float64, len(m.at))
	for i, x := range m.at {
		at[i] = x + log
	}
	return margin{at, m.logs}
}

// solve returns the zero of a rising function between low and high, or the end that is nearer to it.
func solve(low, high float64, f func(float64) float64) float64 {
	const exact = 1e-5
	for high-low > exact {
		if mid := (low + high) / 2; f(mid) < 0 {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// shares are the shares of the capacity at which margins are simulated.
var shares = [...]float64{0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.68, 0.75, 0.81, 0.86, 0.9, 0.94, 0.97, 1}

// logOf returns the logarithm of how far the latencies of a result are beyond the limits. Without an answer, such as from a
// server that refuses the requests, they are twice the limits.
func (m Model) logOf(r queuesim.Result) float64 {
	if r.Throughput == 0 {
		return math.Ln2
	}
	worst := math.Inf(-1)
	for _, l := range m.Limits {
		x := r.Mean
		if q, isQuantile := l.Metric.Quantile(); isQuantile {
			x = r.Quantile(q)
		}
		worst = max(worst, math.Log(max(x, 1e-12)/l.Seconds))
	}
	return worst
}
