package belief

import (
	"math"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
)

// This file computes the information of trials before they are made.

// Information returns the information of a cell's next trials about a metric: the reduction of the
// variance of its logarithm. Memory is known once the pool is opened, and further trials add
// nothing.
func (x *Beliefs) Information(k int, b Belief, trials int) float64 {
	m, variance := x.metrics[k], b.Residuals[k].Variance
	switch {
	case !m.isMemory():
		return min(m.ahead(x.runs(b)).Information(b.Residuals[k], trials), variance)
	case b.Pool == nil || b.Pool.IsReady():
		return 0
	}
	return variance
}

// runs reports whether a trial of a cell would be in the running process.
func (x *Beliefs) runs(b Belief) bool { return b.Pool != nil && b.Pool.Key() == x.next.Running }

// Moves returns the standard deviation by which the next trials of a cell move its score.
func (x *Beliefs) Moves(b Belief, trials int) float64 {
	return math.Sqrt(x.variances(func(k int) float64 { return x.Information(k, b, trials) }))
}

// MovesOver returns the standard deviation by which the next trials of a cell, the leader or
// another, move that other's score against the leader's.
func (x *Beliefs) MovesOver(of, b, leader Belief, trials int) float64 {
	return math.Sqrt(x.variances(func(k int) float64 {
		m := x.metrics[k]
		if m.isMemory() {
			return x.Information(k, of, trials)
		}
		r, s, l := of.Residuals[k], b.Residuals[k], leader.Residuals[k]
		apart := r.Variance - m.covariance(s, l)
		if of.Cell != leader.Cell {
			s = l
		}
		return m.ahead(x.runs(of)).InformationBetween(r, s, apart, trials)
	}))
}

// Needed returns the least result of trials after which a cell keeps its limits with the confidence
// of a leader. It is the excess over the believed speed, in deviations of the trials' information.
// others is the probability that the cell keeps the limits that speed does not affect. Trials move
// a mean, and the rest of the variance remains.
func (x *Beliefs) Needed(b Belief, trials int) (deviations, others float64) {
	deviations, others = math.Inf(-1), 1
	for k, m := range x.metrics {
		if !m.isKnown || len(m.limits) == 0 {
			continue
		}
		variance, information := b.Residuals[k].Variance, x.Information(k, b, trials)
		room := x.sure * math.Sqrt(max(variance-information, 0))
		need := func(way, misses float64) { // way: direction of the metric that keeps the limit
			if d := (misses + room) / max(math.Sqrt(information), posterior.Least); m.direction*way > 0 {
				deviations = max(deviations, d)
			} else {
				others *= distuv.UnitNormal.CDF(-d)
			}
		}
		for _, limit := range m.limits {
			if limit.Max != nil {
				need(-1, b.Means[k]-math.Log(max(*limit.Max, posterior.Least)))
			}
			if limit.Min != nil {
				need(1, math.Log(max(*limit.Min, posterior.Least))-b.Means[k])
			}
		}
	}
	return deviations, others
}

// WindowConstraints returns constraints on a window at its look: the limits, and the lead if the objective
// is one metric. A window that violates them no longer matters. Each has a margin for the error of
// such a short window. There are none while nothing satisfies the constraints, since the size of
// the miss is then needed.
func (x *Beliefs) WindowConstraints(lead float64) []search.Constraint {
	if math.IsInf(lead, -1) {
		return nil
	}
	var list []search.Constraint
	for _, m := range x.metrics {
		if !m.isToldByLoad() {
			continue
		}
		room := math.Exp(x.tuning.Beliefs.Clearly() * m.lookDeviation(x.next.Window))
		for _, limit := range m.limits {
			list = append(list, loosened(limit, room))
		}
		if len(x.goal.Objective.Terms) == 1 && m.weight != 0 {
			list = append(list, m.leading(lead, room))
		}
	}
	return list
}

// lookDeviation returns the standard deviation of the logarithm of a window's figure at its look.
func (m *metric) lookDeviation(window time.Duration) float64 {
	return math.Sqrt(m.view.TrialVariance(measure.Look*window.Seconds()) + m.view.SpeedVariance())
}
