package guided

import (
	"math"

	"tuner/search/queuesim"
)

// promise is what a pool whose service times are not known can do at best.
type promise struct {
	pool *pool
	most float64 // score
}

// promises lists the pools of an engine that are not ready and whose bounds exceed a score within the constraints.
func (g *Guided) promises(e *engine, w width, s *survey, score float64) []promise {
	var curve queuesim.Curve
	switch {
	case e.isOpen():
		curve = e.alone.curve()
	case g.forecasts != nil && e.door() != nil:
		curve = g.forecasts[e.index].hasten(w.optimism)
	}
	if len(curve.Sizes) == 0 {
		return nil
	}
	var list []promise
	b := belief{means: make([]float64, len(g.models)), residuals: make([]residual, len(g.models))}
	for _, p := range e.pools {
		if p.failure != "" || p.isReady() {
			continue
		}
		if most := g.promise(p, curve, w, s, &b); most > score {
			list = append(list, promise{p, most})
		}
	}
	return list
}

// promise is the highest score that a pool may have; -Inf where it cannot satisfy the constraints. Of each size of batches it looks
// at the load that just makes them, and at the lowest and the highest; what does more than the next smaller size allows takes
// at least as long as a batch of that.
func (g *Guided) promise(p *pool, c queuesim.Curve, w width, s *survey, b *belief) float64 {
	o := g.expectedOutline(p, c)
	axis := g.settings.Space.Load
	most := math.Inf(-1)
	for i := range o.sizes {
		lone := o.times[0] + o.overhead
		knee := o.most[i] / float64(g.clientBatch()) // requests/s
		if !axis.Rate {
			knee *= lone
		}
		for _, level := range []float64{g.levels[0], axis.AtMost(knee), axis.AtLeast(knee), g.levels[len(g.levels)-1]} {
			g.atBest(o, i, level, b.means)
			if i > 0 {
				g.takeAtLeast(math.Log(o.times[i-1]+o.overhead), b)
			}
			b.pool, b.level = p, level
			g.expect(spot{pool: p.index}, p, b)
			if b.feasible >= min(w.least, possible) {
				most = max(most, g.upside(w.optimism, s, *b))
			}
		}
	}
	return most
}

// takeAtLeast raises the latencies of a belief to those of a batch. The median may be of smaller ones.
func (g *Guided) takeAtLeast(log float64, b *belief) {
	for k, m := range g.models {
		if m.bindsLatency() {
			b.means[k] = max(b.means[k], log)
		}
	}
}
