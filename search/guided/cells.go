package guided

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/queuesim"
)

// ratio is that of neighbouring levels where any level may be tried, and fine the same around the best one.
const (
	ratio = 1.15
	fine  = 1.04
)

// cell is a configuration at a load.
type cell struct {
	pool *pool
	setting
}

func (c cell) batcher() batcher { return c.pool.batchers[c.setting.batcher] }

// isOf reports whether two cells are of one configuration.
func (c cell) isOf(o cell) bool { return c.pool == o.pool && c.setting.batcher == o.setting.batcher }

// levels are the loads of the grid: the axis's own, or where any is allowed a geometric series of whole numbers.
func levels(axis search.LoadAxis) []float64 {
	first, last := axis.Levels[0], axis.Levels[len(axis.Levels)-1]
	if !axis.Any {
		return slices.Compact(slices.Clone(axis.Levels))
	}
	return between(axis, first, last, ratio)
}

// between lists levels from one to another, neighbours in a ratio or one apart.
func between(axis search.LoadAxis, from, to, ratio float64) []float64 {
	list := []float64{from}
	for level := from; level < to; {
		level = axis.AtLeast(max(math.Floor(level)+1, math.Round(level*ratio)))
		list = append(list, min(level, to))
	}
	return list
}

// place is where a cell lies for the posterior.
func (g *Guided) place(c cell) *posterior.Place {
	x, known := c.pool.places[c.setting]
	if !known {
		p := posterior.PlaceOf(posterior.Cell{Candidate: g.named(c), Load: g.settings.Space.Load.At(c.level)}, g.settings.Space)
		x = &p
		c.pool.places[c.setting] = x
	}
	return x
}

// What counts as a queue that grows without end: a latency of so many limits, or without one of so many of the largest batches.
const (
	endlessLimits  = 2
	endlessBatches = 10
)

// endless is the logarithm of the latency from which on all are alike in an open loop: beyond its capacity a pool's queue grows for as
// long as it is watched, and how far it got says nothing of lower rates.
func (g *Guided) endless(m *model, p *pool) float64 {
	if !g.settings.Space.Load.Rate || !m.isPredicted || m.isRate() {
		return math.Inf(1)
	}
	for _, limit := range m.limits {
		if limit.Max != nil {
			return posterior.Log(m.metric, endlessLimits**limit.Max)
		}
	}
	return posterior.Log(m.metric, endlessBatches*p.outline.times[len(p.outline.times)-1])
}

// isEndless reports whether a trial's latencies are beyond what can be told of a queue that grows: how far they got would tell the posterior of
// the length of the windows.
func (g *Guided) isEndless(m measure.Measurement) bool {
	if !g.settings.Space.Load.Rate {
		return false
	}
	return slices.ContainsFunc(g.settings.Goal.Constraints, func(limit search.Constraint) bool {
		e, isTold := m.Estimate(limit.Metric)
		return isTold && limit.Max != nil && isPredicted(limit.Metric) && limit.Metric != measure.Cost && e.Value > endlessLimits**limit.Max
	})
}

// simulate predicts a cell, once.
func (g *Guided) simulate(c cell) queuesim.Result {
	r, known := c.pool.results[c.setting]
	if !known {
		load := g.settings.Space.Load.At(c.level)
		r = g.simulator.Simulate(c.batcher().queue, c.pool.curve, load, queuesim.Options{Seed: g.settings.Seed})
		c.pool.results[c.setting] = r
	}
	return r
}

// isUseful reports whether a cell is worth a thought: it does not fail, a delay may help at its load, and no smaller batch is the same at it, as when all
// that is in flight fits into one.
func (g *Guided) isUseful(c cell) bool {
	if c.level > g.reach() {
		return false
	}
	b := c.batcher()
	inFlight, _ := g.demand(c.level)
	if b.queue.Delay > 0 && g.isSaturated(c, inFlight) {
		return false
	}
	return inFlight > float64(b.below) && !c.pool.isDead(c.setting)
}

// isSaturated reports whether there are always enough requests waiting for a batch at a cell, with so many in flight. Those on the path to the server do
// not wait: where it takes long, they may be most.
func (g *Guided) isSaturated(c cell, inFlight float64) bool {
	return g.path == 0 && !math.IsInf(inFlight, 1) && inFlight > float64(2*c.batcher().queue.MaxBatch*c.pool.instances)
}

// stride is how far above what was answered so far a request rate may be.
const stride = 1.5

// reach is the highest request rate that is worth a try. What leads to the server may end the rates long before the server would, of which
// service times know nothing; and far beyond its end an open loop tells nothing but that.
func (g *Guided) reach() float64 {
	if !g.settings.Space.Load.Rate || g.answered == 0 {
		return math.Inf(1)
	}
	rate := g.answered / float64(g.clientBatch())
	above := slices.IndexFunc(g.levels, func(level float64) bool { return level > rate })
	if above < 0 {
		return math.Inf(1)
	}
	return max(stride*rate, g.levels[above])
}

// belief is what is believed of a cell.
type belief struct {
	cell
	score     float64   // of the goal, mean
	variance  float64   // of the score
	feasible  float64   // probability that all constraints are satisfied
	lack      float64   // sum of the logarithms by which the means miss constraints
	means     []float64 // logarithm, by model
	residuals []posterior.Residual
	trials    int
}

func (b belief) deviation() float64 { return math.Sqrt(b.variance) }

// believe joins prediction and residuals at a cell.
func (g *Guided) believe(c cell) belief {
	b := belief{cell: c, means: make([]float64, len(g.models)), residuals: make([]posterior.Residual, len(g.models))}
	for k, m := range g.models {
		if b.means[k] = m.centre(); m.isPredicted {
			b.means[k] = g.prior(c, m.metric)
		}
	}
	if t := c.pool.track(c.batcher().key, c.level); t != nil {
		b.trials = t.trials
	}
	g.expect(g.place(c), max(c.batcher().queue.MaxBatch, 1), c.pool, &b)
	return b
}

// expect adds the residuals at a place of a pool, with batches up to a size, to the means of a belief, and judges it.
func (g *Guided) expect(x *posterior.Place, batch int, p *pool, b *belief) {
	for k, m := range g.models {
		b.residuals[k] = g.residual(m, x, batch, p)
		b.means[k] += b.residuals[k].Mean
		switch _, rate := g.demand(b.level); m.metric { // an open loop's server answers no more than what comes
		case measure.Throughput:
			b.means[k] = min(b.means[k], math.Log(rate))
		case measure.Cost:
			b.means[k] = max(b.means[k], g.ofRate(m.metric, rate))
		}
	}
	g.judge(b)
}

// judge sees the means and residuals of a belief through the goal. A metric of which nothing is known counts for nothing.
func (g *Guided) judge(b *belief) {
	b.score, b.feasible, b.lack = 0, 1, 0
	b.variance = g.variances(func(k int) float64 { return b.residuals[k].Variance })
	for k, m := range g.models {
		if !m.isKnown {
			continue
		}
		b.score += m.weight * b.means[k]
		for _, limit := range m.limits {
			b.feasible *= satisfaction(limit, b.means[k], math.Sqrt(b.residuals[k].Variance))
			b.lack += shortfall(limit, b.means[k])
		}
	}
}

// variances joins those of the metrics' logarithms, by model, to that of the score. Whatever makes a machine or a pool faster than believed
// helps all metrics of speed, so these err together.
func (g *Guided) variances(of func(k int) float64) float64 {
	speed, others := 0.0, 0.0
	for k, m := range g.models {
		switch {
		case m.weight == 0 || !m.isKnown:
		case m.direction() != 0:
			speed += m.weight * m.direction() * math.Sqrt(max(of(k), 0))
		default:
			others += m.weight * m.weight * of(k)
		}
	}
	return speed*speed + max(others, 0)
}

// shortfall is by how much the logarithm of a value misses a constraint; 0 where it does not.
func shortfall(c search.Constraint, log float64) float64 {
	miss := 0.0
	if c.Max != nil {
		miss += max(0, log-math.Log(max(*c.Max, floor)))
	}
	if c.Min != nil {
		miss += max(0, math.Log(max(*c.Min, floor))-log)
	}
	return miss
}

// satisfaction is the probability that a log-normal value is within a constraint.
func satisfaction(c search.Constraint, mean, deviation float64) float64 {
	p := 1.0
	deviation = max(deviation, floor)
	if c.Max != nil {
		p *= distuv.UnitNormal.CDF((math.Log(max(*c.Max, floor)) - mean) / deviation)
	}
	if c.Min != nil {
		p *= distuv.UnitNormal.CDF((mean - math.Log(max(*c.Min, floor))) / deviation)
	}
	return p
}

// difference is the variance of the difference of two cells' scores.
func (g *Guided) difference(a, b belief) float64 {
	return g.variances(func(k int) float64 {
		x, y, m := a.residuals[k], b.residuals[k], g.models[k]
		switch {
		case !m.isMemory():
			return x.Variance + y.Variance - 2*g.covariance(m, x, y)
		case a.pool == b.pool:
			return 0
		}
		return x.Variance + y.Variance
	})
}
