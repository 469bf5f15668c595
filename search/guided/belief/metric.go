package belief

import (
	"math"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/queuesim"
)

// metric holds the estimates of one metric of the goal, on log scale.
type metric struct {
	name        measure.Metric
	quantile    float64 // of a percentile of the latency; else 0
	within      float64 // s, limit of a goodput; else 0
	direction   float64 // in which it changes on a faster machine; 0 if it does not depend on speed
	weight      float64 // in the objective, negative if lower is better; 0 for none
	limits      []search.Constraint
	isPredicted bool // by the simulation of the queue
	isDropped   bool // its predictions turned out wrong
	isKnown     bool // it was measured, or is predicted
	view        *posterior.View
	reference   posterior.Reference // last cell with which others were compared
	compared    posterior.Residual  // last cell that was compared with it, for several numbers of trials
	common      float64             // their covariance
	running     posterior.Ahead     // the error of the next trial in the running process
	fresh       posterior.Ahead     // and in a process that is launched for it
}

func newMetric(name measure.Metric) *metric {
	m := &metric{name: name, isPredicted: isPredicted(name)}
	m.quantile, _ = name.Quantile()
	limit, _ := name.Within()
	m.within = limit.Seconds()
	if m.direction = posterior.Direction(m.source()); name == measure.Cost {
		m.direction = -m.direction
	}
	return m
}

// centre returns the mean logarithm of cells without a prediction.
func (m *metric) centre() float64 {
	if m.view == nil {
		return 0
	}
	return m.view.Centre()
}

// isMemory reports whether the metric is memory, which depends only on the pool and the largest
// batch.
func (m *metric) isMemory() bool { return m.name == measure.Memory }

// bindsLatency reports whether the metric is at least the time of the batches that a throughput
// needs. The median may be that of smaller ones.
func (m *metric) bindsLatency() bool {
	return m.name == measure.LatencyAvg || m.quantile > 0.5
}

// isRate reports whether the metric is the throughput, or the cost, which is its reciprocal times a
// factor.
func (m *metric) isRate() bool { return m.name == measure.Throughput || m.name == measure.Cost }

// isGoodput reports whether the metric counts the answers within a limit.
func (m *metric) isGoodput() bool { return m.within > 0 }

// isPredicted reports whether the simulation of the queue predicts a metric.
func isPredicted(name measure.Metric) bool {
	switch name {
	case measure.Throughput, measure.Cost, measure.LatencyAvg, measure.QueueTime:
		return true
	}
	_, isQuantile := name.Quantile()
	return isQuantile || name.IsGoodput()
}

// isToldByLoad reports whether the load generator itself measures a metric.
func (m *metric) isToldByLoad() bool {
	return m.quantile > 0 || m.isGoodput() || m.name == measure.Throughput || m.name == measure.LatencyAvg
}

// predicted returns a metric of a simulated queue, except rates and goodputs.
func (m *metric) predicted(r queuesim.Result) float64 {
	switch m.name {
	case measure.LatencyAvg:
		return r.Mean
	case measure.LatencyP50:
		return r.P50
	case measure.LatencyP90:
		return r.P90
	case measure.LatencyP95:
		return r.P95
	case measure.LatencyP99:
		return r.P99
	case measure.QueueTime:
		return r.Queue
	}
	return r.Quantile(m.quantile)
}

// ahead returns the error of the next trial: in the running process, or in a new one.
func (m *metric) ahead(isRunning bool) posterior.Ahead {
	if isRunning {
		return m.running
	}
	return m.fresh
}

// source returns the measured metric behind it: the cost is derived from the throughput.
func (m *metric) source() measure.Metric {
	if m.name == measure.Cost {
		return measure.Throughput
	}
	return m.name
}

// leading returns the constraint on an objective's only metric for a score, with a factor as a
// margin.
func (m *metric) leading(score, room float64) search.Constraint {
	value := math.Exp(score / m.weight)
	if m.weight > 0 {
		return loosened(search.Constraint{Metric: m.name, Min: &value}, room)
	}
	return loosened(search.Constraint{Metric: m.name, Max: &value}, room)
}

// loosened returns a constraint with a factor as a margin.
func loosened(c search.Constraint, room float64) search.Constraint {
	if c.Max != nil {
		most := *c.Max * room
		c.Max = &most
	}
	if c.Min != nil {
		least := *c.Min / room
		c.Min = &least
	}
	return c
}
