package guided

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
)

// The standard deviation of the logarithms of measured against simulated figures within pools, beyond which
// the simulation is of no use, and the number of degrees of freedom that this takes.
const (
	wrong = 0.3
	vague = 3
)

// relearn learns the posterior's scales when the trials have grown. That is when a trial is told, so that scales
// follow from the events alone, whenever the search is asked.
func (g *Guided) relearn() {
	n := len(g.past.trials) + len(g.entered)
	if n == g.scaledAt || float64(n) < posterior.Growth*float64(g.scaledAt) {
		return
	}
	g.scaledAt = n
	g.scales = posterior.New(g.beliefOptions(nil), g.trials())
}

// learn conditions what is known of each metric on all that was measured in ready pools.
func (g *Guided) learn() {
	if g.isLearned {
		return
	}
	g.isLearned = true
	g.known = posterior.New(g.beliefOptions(g.scales), g.trials())
	for _, m := range g.models {
		if m.isMemory() {
			m.isKnown = g.held.Any()
			continue
		}
		m.view = g.known.View(m.source(), m.isPredicted)
		m.reference = posterior.Reference{}
		g.lookAhead(m)
		m.isKnown = m.isPredicted || m.view.IsSeen()
	}
	g.sure = distuv.UnitNormal.Quantile(math.Pow(g.trusted, 1/float64(max(g.limits(), 1))))
}

// lookAhead prepares what the next trial may tell of a metric.
func (g *Guided) lookAhead(m *model) {
	window := g.window()
	at := g.costs.elapsed + g.costs.warmUp.or(guessedWarmUp) + window/2
	m.running = m.view.Ahead(at.Seconds(), window.Seconds(), g.costs.launched)
	launch := g.costs.launch.or(guessedLaunch)
	m.fresh = m.view.Ahead((at + launch).Seconds(), float64(g.windowsAfter(launch))*window.Seconds(), 0)
}

// runs reports whether a trial of a pool would be in the process that runs.
func (g *Guided) runs(p *pool) bool { return p != nil && p.key == g.costs.process.Pool }

// trials lists those of cells, earlier campaigns' first.
func (g *Guided) trials() []search.Event { return slices.Concat(g.past.trials, g.entered) }

// adjust brings the simulation up to date with what trials tell of it as a whole. That is when a trial is told: what is predicted must
// not depend on when it is asked for.
func (g *Guided) adjust() {
	g.learnPath()
	for _, m := range g.models {
		m.isDropped = m.isPredicted && g.isWrong(m)
	}
}

func (g *Guided) beliefOptions(like *posterior.Posterior) posterior.Options {
	return posterior.Options{Space: g.settings.Space, Goal: g.settings.Goal, Prior: g, Figures: &g.figures, Like: like, IsSketch: like != nil}
}

// isWrong reports whether a metric differs more from the simulation within pools than predictions may, beyond what trials differ by
// themselves: beside a neighbour a p99 scatters by half.
func (g *Guided) isWrong(m *model) bool {
	scatter := 0.0
	if g.scales != nil {
		scatter = g.scales.Scatter(m.source())
	}
	squares, freedom, noise := 0.0, 0.0, 0.0
	for _, p := range g.pools {
		if !p.isReady() {
			continue
		}
		sum, all, own, n := 0.0, 0.0, 0.0, 0.0
		for _, t := range p.tracks {
			at, found := p.find(t.key)
			e, isTold := t.measurement.Estimate(m.source())
			if !found || !isTold {
				continue
			}
			x := min(posterior.Log(m.source(), e.Value), g.endless(m, p)) - g.simulated(cell{p, setting{at, t.level}}, m.source())
			sum, all, own, n = sum+x, all+x*x, own+scatter/float64(t.trials), n+1
		}
		if n > 1 {
			squares, freedom, noise = squares+all-sum*sum/n, freedom+n-1, noise+own*(n-1)/n
		}
	}
	most := wrong*wrong*freedom + noise
	return freedom >= vague && squares > most+clearly*most*math.Sqrt(2/freedom) // the deviation of a sum of squares
}

// Log predicts the natural logarithm of a metric of a configuration under a load from service times: false where
// the engine's are not known, and for metrics that the simulation does not tell. It makes Guided a
// posterior.Prior.
func (g *Guided) Log(c search.Candidate, load measure.Load, metric measure.Metric) (float64, bool) {
	x, ok := g.cellOf(c, load)
	if !ok || !isPredicted(metric) {
		return 0, false
	}
	return g.prior(x, metric), true
}

// prior is the logarithm that the simulation predicts for a metric at a cell, or what stands for it.
func (g *Guided) prior(c cell, metric measure.Metric) float64 {
	for _, m := range g.models {
		switch {
		case m.metric != metric && m.source() != metric:
		case m.isDropped:
			return g.plain(metric, c.pool.outline, c.level)
		default:
			return min(g.simulated(c, metric), g.endless(m, c.pool))
		}
	}
	return g.simulated(c, metric)
}

// simulated is the logarithm of a metric of a cell by the simulation alone.
func (g *Guided) simulated(c cell, metric measure.Metric) float64 {
	r := g.simulate(c)
	if m := newModel(metric); !m.isRate() {
		return posterior.Log(metric, m.predicted(r))
	}
	return g.ofRate(metric, max(r.Throughput, floor))
}

// residual is what is expected of a metric beyond its prediction at a place of a pool.
func (g *Guided) residual(m *model, x *posterior.Place, batch int, p *pool) posterior.Residual {
	if !m.isMemory() {
		r := m.view.At(x)
		if m.metric == measure.Cost {
			r.Mean = -r.Mean
		}
		return r
	}
	held, ok := p.held.Holds(batch)
	if !ok {
		return posterior.Residual{}
	}
	deviation := held.Deviation()
	return posterior.Residual{Mean: math.Log(held.Value), Variance: deviation * deviation}
}

// covariance is that of a metric's logarithms at two cells.
func (g *Guided) covariance(m *model, a, b posterior.Residual) float64 {
	if !m.reference.Is(b) {
		m.reference = m.view.Against(b)
	}
	return m.reference.Covariance(a)
}
