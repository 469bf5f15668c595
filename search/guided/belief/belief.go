package belief

import (
	"iter"
	"math"
	"slices"

	"tuner/measure"
	"tuner/search/guided/pools"
	"tuner/search/guided/predict"
	"tuner/search/guided/service"
	"tuner/search/posterior"
)

// Belief is the estimate of a cell.
type Belief struct {
	pools.Cell
	Score     float64   // of the goal, mean
	Variance  float64   // of the score
	Feasible  float64   // probability that all constraints are satisfied
	Lack      float64   // sum of the logarithms by which the means miss constraints
	Means     []float64 // logarithm, by metric of the goal
	Residuals []posterior.Residual
	Trials    int
}

// Deviation returns the standard deviation of the score.
func (b Belief) Deviation() float64 { return math.Sqrt(b.Variance) }

// empty returns a belief to fill in.
func (c criteria) empty() Belief {
	return Belief{Means: make([]float64, len(c.metrics)), Residuals: make([]posterior.Residual, len(c.metrics))}
}

// Believe combines prediction and residuals at a cell of a ready pool.
func (x *Beliefs) Believe(c pools.Cell) Belief {
	b := x.empty()
	b.Cell = c
	for k, m := range x.metrics {
		if b.Means[k] = m.centre(); m.isPredicted {
			b.Means[k] = x.prior(c, m.name)
		}
	}
	if h := c.Pool.History(c.Batcher().Key, c.Level); h != nil {
		b.Trials = h.Trials
	}
	x.expect(x.coordinates.of(c), c.MaxBatch(), &b)
	return b
}

// AtBest is Believe with the cell's bounds instead of its simulation.
func (x *Beliefs) AtBest(c pools.Cell) Belief {
	b := x.empty()
	x.FillAtBest(c, &b)
	return b
}

// FillAtBest is AtBest with reused memory. It overwrites the belief.
func (x *Beliefs) FillAtBest(c pools.Cell, b *Belief) {
	if len(b.Means) != len(x.metrics) {
		*b = x.empty()
	}
	b.Cell = c
	o := x.predictor.Outline(c.Pool)
	x.bound(o, o.UpTo(c.Batcher().Queue.MaxBatch), c.Level, b.Means)
	x.expect(x.coordinates.of(c), c.MaxBatch(), b)
}

// bound fills in, for each metric, the logarithm of its bound over all cells at a load with batches
// up to the i-th size. A percentile above the median is at least the mean, except in rare
// distributions.
func (x *Beliefs) bound(o predict.Outline, i int, level float64, logs []float64) {
	best := x.predictor.Bound(o, i, level)
	for k, m := range x.metrics {
		switch {
		case m.isDropped:
			logs[k] = x.plain(m.name, o, level)
		case m.isRate():
			logs[k] = x.ofRate(m.name, best.Throughput)
		case m.isGoodput():
			logs[k] = m.bestGoodput(best)
		case m.name == measure.QueueTime:
			logs[k] = posterior.Log(m.name, 0)
		case m.quantile > 0 && m.quantile <= 0.5:
			logs[k] = math.Log(best.Lone)
		case m.isPredicted:
			logs[k] = math.Log(best.Wait)
		default:
			logs[k] = m.centre()
		}
	}
}

// bestGoodput returns the logarithm of a bound of the goodput. All answers may be in time, unless
// one alone takes too long.
func (m *metric) bestGoodput(best predict.Bound) float64 {
	share := 1.0
	if best.Lone > m.within {
		share = 0
	}
	return posterior.LogGoodput(best.Throughput, share)
}

// plain returns the logarithm that replaces the prediction of a metric whose predictions are wrong.
// It assumes the same throughput in each pool, within the clients' demand, and the latency that
// follows by Little's law.
func (x *Beliefs) plain(name measure.Metric, o predict.Outline, level float64) float64 {
	b := x.predictor.Bound(o, o.Largest(), level)
	if name == measure.Throughput || name == measure.Cost {
		return x.ofRate(name, b.Throughput)
	}
	if m := x.metric(name); m.isGoodput() {
		return m.bestGoodput(b)
	}
	return math.Log(b.Wait)
}

// expect adds the residuals at coordinates in the belief's pool, with batches up to a size, to the
// means, and judges them.
func (x *Beliefs) expect(at *posterior.Coordinates, batch int, b *Belief) {
	for k, m := range x.metrics {
		b.Residuals[k] = x.residual(m, at, batch, b.Pool)
		b.Means[k] += b.Residuals[k].Mean
		// an open loop's server answers at most the offered requests
		switch _, rate := x.predictor.Demand(b.Level); m.name {
		case measure.Throughput:
			b.Means[k] = min(b.Means[k], math.Log(rate))
		case measure.Cost:
			b.Means[k] = max(b.Means[k], x.ofRate(m.name, rate))
		default:
			if m.isGoodput() {
				b.Means[k] = min(b.Means[k], math.Log(rate))
			}
		}
	}
	x.Judge(b)
}

// residual returns the expected residual of a metric at coordinates in a pool, beyond its prediction.
func (x *Beliefs) residual(m *metric, at *posterior.Coordinates, batch int, p *pools.Pool) posterior.Residual {
	if !m.isMemory() {
		r := m.view.At(at)
		if m.name == measure.Cost {
			r.Mean = -r.Mean
		}
		return r
	}
	held, ok := p.Memory().Holds(batch)
	if !ok {
		return posterior.Residual{}
	}
	deviation := held.Deviation()
	return posterior.Residual{Mean: math.Log(held.Value), Variance: deviation * deviation}
}

// Outlook yields beliefs of a pool that is not ready. For each batch size there is the load that
// just makes such batches; the lowest and the highest load are added. A cell with more throughput
// than the next smaller size allows takes at least as long as a batch of this size. A belief is
// valid until the next one.
func (x *Beliefs) Outlook(p *pools.Pool, f predict.Forecast) iter.Seq[Belief] {
	o := x.predictor.ExpectedOutline(p, f.Curve)
	unknown := f.Deviation*f.Deviation + x.predictor.Contention(p).Variance
	axis := x.space.Load
	return func(yield func(Belief) bool) {
		b := x.empty()
		for i, size := range o.Sizes {
			knee := o.Most[i] / float64(x.pools.ClientBatch()) // requests/s
			if !axis.Rate {
				knee *= o.Lone()
			}
			levels := [...]float64{axis.Levels[0], axis.AtMost(knee), axis.AtLeast(knee), axis.Levels[len(axis.Levels)-1]}
			for j, level := range levels {
				if slices.Contains(levels[:j], level) {
					continue
				}
				x.bound(o, i, level, b.Means)
				if i > 0 {
					x.raiseLatencies(b, math.Log(o.Seconds[i-1]+o.Overhead))
				}
				b.Pool, b.Level = p, level
				beyond := posterior.CoordinatesBeyond(axis.At(level), size)
				x.expect(&beyond, size, &b)
				variance := unknown + service.VarianceBeyond(size, f.Last, x.tuning.Service.BeyondDeviation)
				x.doubt(&b, func(*metric) float64 { return variance })
				if !yield(b) {
					return
				}
			}
		}
	}
}

// raiseLatencies raises the latencies of a belief to those of a batch. The median may be of smaller
// ones.
func (x *Beliefs) raiseLatencies(b Belief, log float64) {
	for k, m := range x.metrics {
		if m.bindsLatency() && !m.isDropped {
			b.Means[k] = max(b.Means[k], log)
		}
	}
}

// doubt adds a variance to the predicted metrics of a belief.
func (x *Beliefs) doubt(b *Belief, variance func(m *metric) float64) {
	for k, m := range x.metrics {
		if m.isPredicted {
			b.Residuals[k].Variance += variance(m)
		}
	}
	x.Judge(b)
}

// Stated returns a belief plus the uncertainty of an open pool's curve about an unmeasured cell. It
// is only for statements: in the search every such cell would remain a challenger until it is
// measured.
//
// The doubt is about the batches that the simulation makes there. With several instances or little in flight most are
// far smaller than the largest that is allowed. Rates depend on all of them, and a high percentile of the latency on the
// largest.
func (x *Beliefs) Stated(b Belief) Belief {
	r := x.predictor.Simulate(b.Cell)
	if r.MostBeyond == 0 {
		return b
	}
	b.Residuals = slices.Clone(b.Residuals)
	x.doubt(&b, func(m *metric) float64 {
		doublings := r.MostBeyond
		if m.isRate() {
			doublings = r.Beyond
		}
		return service.VarianceOf(doublings, x.tuning.Service.BeyondDeviation)
	})
	return b
}

// Difference returns the variance of the difference of two cells' scores.
func (x *Beliefs) Difference(a, b Belief) float64 {
	return x.variances(func(k int) float64 {
		r, s, m := a.Residuals[k], b.Residuals[k], x.metrics[k]
		switch {
		case !m.isMemory():
			return r.Variance + s.Variance - 2*m.covariance(r, s)
		case a.Pool == b.Pool:
			return 0
		}
		return r.Variance + s.Variance
	})
}

// covariance returns the covariance of a metric's logarithms at two cells.
func (m *metric) covariance(a, b posterior.Residual) float64 {
	isSame := m.reference.Is(b)
	if !isSame {
		m.reference = m.view.Against(b)
	}
	if !isSame || !m.compared.Is(a) {
		m.compared, m.common = a, m.reference.Covariance(a)
	}
	return m.common
}
