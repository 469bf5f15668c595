package guided

import (
	"math"
	"slices"

	"tuner/search"
	"tuner/search/posterior"
)

// promise is what a pool whose service times are not known may do.
type promise struct {
	pool *pool
	gain float64 // expected, over the lead, in scores; while nothing satisfies the constraints, the probability that it does
	next float64 // the part of it that one trial is expected to bring; the same probability
	most float64 // score that it may have
}

// promises lists the pools of an engine that are not ready and are worth a trial.
func (g *Guided) promises(e *engine, w width, s *survey) []promise {
	least := g.weight() * w.tolerance
	if math.IsInf(s.lead, -1) {
		least = possible
	}
	return slices.DeleteFunc(g.prospects(e, w, s), func(x promise) bool { return x.gain <= least })
}

// prospects lists all pools of an engine that are not ready, as far as its service times are known or foreseen.
func (g *Guided) prospects(e *engine, w width, s *survey) []promise {
	f, ok := g.foreseen(e)
	if !ok {
		return nil
	}
	var list []promise
	for _, p := range e.pools {
		if p.failure == "" && !p.isReady() {
			list = append(list, g.promise(p, f, w, s))
		}
	}
	return list
}

// chance is the highest probability that a configuration satisfies the constraints, of cells and of pools that were not started, while
// none is believed to.
func (g *Guided) chance(d *decision) float64 {
	if len(g.pools) == 0 {
		return 0
	}
	most, known := d.survey.chance, g.experience()
	for _, e := range g.engines {
		if isHopeless(e, known) {
			continue
		}
		for _, x := range g.prospects(e, d.width, &d.survey) {
			most = max(most, x.gain)
		}
	}
	return most
}

// promise looks, of each size of batches, at the load that just makes them, and at the lowest and the highest; what does more than the
// next smaller size allows takes at least as long as a batch of that.
func (g *Guided) promise(p *pool, f forecast, w width, s *survey) promise {
	o := g.expectedOutline(p, f.curve)
	unknown := f.deviation*f.deviation + p.company.variance
	axis, best := g.settings.Space.Load, promise{pool: p, most: math.Inf(-1)}
	b := belief{means: make([]float64, len(g.models)), residuals: make([]posterior.Residual, len(g.models))}
	for i := range o.sizes {
		lone := o.times[0] + o.overhead
		knee := o.most[i] / float64(g.clientBatch()) // requests/s
		if !axis.Rate {
			knee *= lone
		}
		levels := [...]float64{g.levels[0], axis.AtMost(knee), axis.AtLeast(knee), g.levels[len(g.levels)-1]}
		for j, level := range levels {
			if slices.Contains(levels[:j], level) {
				continue
			}
			g.atBest(o, i, level, b.means)
			if i > 0 {
				g.takeAtLeast(math.Log(o.times[i-1]+o.overhead), b)
			}
			b.pool, b.level = p, level
			x := posterior.PlaceBeyond(axis.At(level), o.sizes[i])
			g.expect(&x, o.sizes[i], p, &b)
			g.doubtMore(&b, unknown)
			g.improve(&best, b, w, s)
		}
	}
	return best
}

// takeAtLeast raises the latencies of a belief to those of a batch. The median may be of smaller ones.
func (g *Guided) takeAtLeast(log float64, b belief) {
	for k, m := range g.models {
		if m.bindsLatency() {
			b.means[k] = max(b.means[k], log)
		}
	}
}

// doubtMore adds a variance to what is predicted in a belief.
func (g *Guided) doubtMore(b *belief, variance float64) {
	for k, m := range g.models {
		if m.isPredicted {
			b.residuals[k].Variance += variance
		}
	}
	g.judge(b)
}

// improve enters a belief in the promise of its pool.
func (g *Guided) improve(best *promise, b belief, w width, s *survey) {
	if math.IsInf(s.lead, -1) {
		best.gain = max(best.gain, b.feasible)
		best.next = best.gain
		return
	}
	if b.feasible >= w.least {
		best.gain = max(best.gain, g.improvement(s, b))
		best.next = max(best.next, g.lesson(s, b))
		best.most = max(best.most, g.upside(w.kappa, s, b))
	}
}

// opening is a service trial that makes a pool ready, or is the first of two that do.
type opening struct {
	pool  *pool
	worth float64 // expected gain per second
}

// opening is the best one, and false where none is worth a trial.
func (g *Guided) opening(w width, s *survey) (opening, bool) {
	var best opening
	known := g.experience()
	for _, e := range g.engines {
		if isHopeless(e, known) {
			continue
		}
		for _, x := range g.promises(e, w, s) {
			if worth := x.next / g.openingCost(x.pool); worth > best.worth && g.allows(g.begin(x.pool)) {
				best = opening{x.pool, worth}
			}
		}
	}
	return best, best.pool != nil
}

// openingCost is what it takes until the first window of a pool, in seconds.
func (g *Guided) openingCost(p *pool) float64 {
	trials := 1
	if !p.engine.isOpen() && p.instances > 1 {
		trials = 2
	}
	service := float64(trials*len(g.sizes(p.maxBatch))) * g.costs.size.or(guessedSize).Seconds()
	first := g.candidates.Member(p.settings, 0)
	return service + g.costs.expect(p.engine, first, first.Key(), g.window()).Seconds()
}

// begin is the next service trial of a pool that is to be ready: what a batch takes alone, where that is not known of its engine, or
// with all instances at work.
func (g *Guided) begin(p *pool) search.Action {
	if !p.engine.isOpen() {
		return g.service(p, 1, g.sizes(p.maxBatch), "service times of an engine that may be better")
	}
	return g.service(p, p.instances, g.sizes(p.maxBatch), "service times of instances together")
}
