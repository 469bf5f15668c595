package belief

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/queuesim"
)

// criteria is the goal in the form that judges beliefs: its metrics, by weight and limits.
type criteria struct {
	goal    search.Goal
	metrics []*metric
	within  []float64 // s, limits of the goodputs in queuesim.Result.Within
}

// newCriteria lists the metrics of a goal.
func newCriteria(goal search.Goal) criteria {
	c := criteria{goal: goal, within: goal.Within()}
	add := func(name measure.Metric) *metric {
		for _, m := range c.metrics {
			if m.name == name {
				return m
			}
		}
		m := newMetric(name)
		c.metrics = append(c.metrics, m)
		return m
	}
	for _, t := range goal.Objective.Terms {
		add(t.Metric).weight += t.Signed()
	}
	for _, limit := range goal.Constraints {
		m := add(limit.Metric)
		m.limits = append(m.limits, limit)
	}
	return c
}

// metric returns the metric of a name, also one that the goal does not have.
func (c criteria) metric(name measure.Metric) *metric {
	for _, m := range c.metrics {
		if m.name == name {
			return m
		}
	}
	return newMetric(name)
}

// Dropped lists the metrics whose predictions turned out wrong.
func (c criteria) Dropped() []measure.Metric {
	var list []measure.Metric
	for _, m := range c.metrics {
		if m.isDropped {
			list = append(list, m.name)
		}
	}
	return list
}

// IsScored reports whether a trial has windows, and all metrics of the objective.
func (c criteria) IsScored(m measure.Measurement) bool {
	seconds := 0.0
	for _, w := range m.Windows {
		seconds += w.Duration.Seconds()
	}
	isScored := seconds > 0
	for _, t := range c.goal.Objective.Terms {
		e, ok := c.goal.Estimate(m, t.Metric)
		isScored = isScored && ok && e.Value > 0
	}
	return isScored
}

// TightestLatency returns the lowest limit on a latency that one batch alone would exceed, in
// seconds; infinite without one. The median may be that of smaller batches. No answer of a batch
// beyond the limit of a goodput counts.
func (c criteria) TightestLatency() float64 {
	least := math.Inf(1)
	for _, m := range c.metrics {
		if m.isGoodput() {
			least = min(least, m.within)
		}
		if !m.bindsLatency() {
			continue
		}
		for _, limit := range m.limits {
			if limit.Max != nil {
				least = min(least, *limit.Max)
			}
		}
	}
	return least
}

// Misses returns the constraints that a belief's means miss.
func (c criteria) Misses(b Belief) []search.Miss {
	var list []search.Miss
	for k, m := range c.metrics {
		for _, limit := range m.limits {
			value := math.Exp(b.Means[k])
			if v := limit.Violation(value); v > 0 && m.isKnown {
				list = append(list, search.Miss{Constraint: limit, Value: value, Violation: v})
			}
		}
	}
	return list
}

// Judge applies the goal to the means and residuals of a belief. It ignores unknown metrics.
func (c criteria) Judge(b *Belief) {
	b.Score, b.Feasible, b.Lack = 0, 1, 0
	b.Variance = c.variances(func(k int) float64 { return b.Residuals[k].Variance })
	for k, m := range c.metrics {
		if !m.isKnown {
			continue
		}
		b.Score += m.weight * b.Means[k]
		for _, limit := range m.limits {
			b.Feasible *= satisfaction(limit, b.Means[k], math.Sqrt(b.Residuals[k].Variance))
			b.Lack += shortfall(limit, b.Means[k])
		}
	}
}

// variances combines the variances of the metrics' logarithms, by their indices, into that of the
// score. A machine or a pool that is faster than predicted improves all metrics of speed, so their
// errors are correlated.
func (c criteria) variances(of func(k int) float64) float64 {
	speed, others := 0.0, 0.0
	for k, m := range c.metrics {
		switch {
		case m.weight == 0 || !m.isKnown:
		case m.direction != 0:
			speed += m.weight * m.direction * math.Sqrt(max(of(k), 0))
		default:
			others += m.weight * m.weight * of(k)
		}
	}
	return speed*speed + max(others, 0)
}

// limits returns the number of bounds on known metrics in the constraints. They share equally the
// probability with which a leader may miss one.
func (c criteria) limits() (n int) {
	for _, m := range c.metrics {
		for _, limit := range m.limits {
			for _, bound := range []*float64{limit.Min, limit.Max} {
				if m.isKnown && bound != nil {
					n++
				}
			}
		}
	}
	return n
}

// ofRate returns the logarithm of throughput or cost at a throughput in inferences/s.
func (c criteria) ofRate(name measure.Metric, throughput float64) float64 {
	if name == measure.Cost {
		throughput = c.goal.Cost(throughput)
	}
	return math.Log(throughput)
}

// logGoodput returns the logarithm of a goodput by the simulation alone.
func (c criteria) logGoodput(m *metric, r queuesim.Result) float64 {
	share := 0.0
	if i := slices.Index(c.within, m.within); i >= 0 && i < len(r.Within) {
		share = r.Within[i]
	}
	return posterior.LogGoodput(max(r.Throughput, posterior.Least), share)
}

// simulatedValue returns a metric by the simulation alone; nil if it lacks the metric.
func (c criteria) simulatedValue(name measure.Metric, r queuesim.Result) *float64 {
	m := c.metric(name)
	var v float64
	switch {
	case m.isRate():
		v = math.Exp(c.ofRate(name, r.Throughput))
	case m.isGoodput():
		v = math.Exp(c.logGoodput(m, r))
	case m.isPredicted:
		v = m.predicted(r)
	default:
		return nil
	}
	return &v
}

// predictions returns the estimates of a belief and a simulation for each metric: the known ones of
// the goal, and those of every report.
func (c criteria) predictions(b Belief, r queuesim.Result) []search.Predicted {
	var list []search.Predicted
	for k, m := range c.metrics {
		if m.isKnown {
			believed := posterior.Normal{Mean: b.Means[k], Deviation: math.Sqrt(b.Residuals[k].Variance)}.Estimate()
			list = append(list, search.Predicted{Metric: m.name, Simulated: c.simulatedValue(m.name, r), Believed: &believed})
		}
	}
	for _, name := range []measure.Metric{measure.Throughput, measure.LatencyAvg, measure.LatencyP99} {
		if !slices.ContainsFunc(list, func(p search.Predicted) bool { return p.Metric == name }) {
			list = append(list, search.Predicted{Metric: name, Simulated: c.simulatedValue(name, r)})
		}
	}
	return list
}

// shortfall returns the amount by which the logarithm of a value misses a constraint; 0 if it
// satisfies it.
func shortfall(c search.Constraint, log float64) float64 {
	miss := 0.0
	if c.Max != nil {
		miss += max(0, log-math.Log(max(*c.Max, posterior.Least)))
	}
	if c.Min != nil {
		miss += max(0, math.Log(max(*c.Min, posterior.Least))-log)
	}
	return miss
}

// satisfaction returns the probability that a log-normal value is within a constraint.
func satisfaction(c search.Constraint, mean, deviation float64) float64 {
	p := 1.0
	deviation = max(deviation, posterior.Least)
	if c.Max != nil {
		p *= distuv.UnitNormal.CDF((math.Log(max(*c.Max, posterior.Least)) - mean) / deviation)
	}
	if c.Min != nil {
		p *= distuv.UnitNormal.CDF((mean - math.Log(max(*c.Min, posterior.Least))) / deviation)
	}
	return p
}
