package guided

import (
	"iter"
	"math"
	"slices"

	"tuner/search"
	"tuner/search/posterior"
)

// promise is what a pool whose service times are not known may do.
type promise struct {
	pool   *pool
	worth  float64 // per second, see Guided.rate
	chance float64 // the highest probability that a cell satisfies the constraints
}

// promises lists the pools of an engine that are not ready and are worth a trial.
func (g *Guided) promises(e *engine, s *survey) []promise {
	return slices.DeleteFunc(g.prospects(e, s), func(x promise) bool { return x.worth == 0 })
}

// prospects lists all pools of an engine that are not ready, as far as its service times are known or foreseen.
func (g *Guided) prospects(e *engine, s *survey) []promise {
	f, ok := g.foreseen(e)
	if !ok {
		return nil
	}
	var list []promise
	for _, p := range e.pools {
		if p.failure == "" && !p.isReady() {
			list = append(list, g.promise(p, f, s))
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
		for _, x := range g.prospects(e, &d.survey) {
			most = max(most, x.chance)
		}
	}
	return most
}

// promise is the most that a pool may do.
func (g *Guided) promise(p *pool, f forecast, s *survey) promise {
	best, cost := promise{pool: p}, g.openingCost(p, f)
	for b := range g.outlook(p, f) {
		g.improve(&best, b, cost, s)
	}
	return best
}

// outlook yields what is believed of a pool that is not ready: of each size of batches at the load that just makes them, and at the lowest and the
// highest; what does more than the next smaller size allows takes at least as long as a batch of that. A belief is valid until the next one.
func (g *Guided) outlook(p *pool, f forecast) iter.Seq[belief] {
	o := g.expectedOutline(p, f.curve)
	unknown := f.deviation*f.deviation + p.company.variance
	axis, lone := g.settings.Space.Load, o.times[0]+o.overhead
	return func(yield func(belief) bool) {
		b := belief{means: make([]float64, len(g.models)), residuals: make([]posterior.Residual, len(g.models))}
		for i := range o.sizes {
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
				g.doubtMore(&b, unknown+beyond(o.sizes[i], f.last))
				if !yield(b) {
					return
				}
			}
		}
	}
}

// takeAtLeast raises the latencies of a belief to those of a batch. The median may be of smaller ones.
func (g *Guided) takeAtLeast(log float64, b belief) {
	for k, m := range g.models {
		if m.bindsLatency() && !m.isDropped {
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
func (g *Guided) improve(best *promise, b belief, cost float64, s *survey) {
	best.chance = max(best.chance, b.feasible)
	if b.feasible < possible {
		return
	}
	best.worth = max(best.worth, g.rate(cost, func(trials int) float64 { return g.gain(s, b, trials) }))
}

// opening is the pool that is worth most to be made ready, and false where none is worth a trial.
func (g *Guided) opening(s *survey) (promise, bool) {
	var best promise
	known := g.experience()
	for _, e := range g.engines {
		if isHopeless(e, known) {
			continue
		}
		for _, x := range g.promises(e, s) {
			if x.worth > best.worth && g.allows(g.begin(x.pool)) {
				best = x
			}
		}
	}
	return best, best.pool != nil
}

// openingCost is what it takes until the first window of a pool, in seconds.
func (g *Guided) openingCost(p *pool, f forecast) float64 {
	trials := 1
	if !p.engine.isOpen() && p.instances > 1 {
		trials = 2
	}
	service := 0.0
	for _, size := range g.sizes(p.maxBatch)[:g.brief(p, f.curve)] {
		takes := max(g.costs.size.or(guessedSize).Seconds(), sizeBatches*f.curve.Time(size, p.instances, p.instances))
		service += float64(trials) * takes
	}
	first := g.candidates.Member(p.settings, 0)
	return service + g.costs.expect(p.engine, first, first.Key(), g.window()).Seconds()
}

// begin is the next service trial of a pool that is to be ready: what a batch takes alone, where that is not known of its engine, or
// with all instances at work.
func (g *Guided) begin(p *pool) search.Action {
	if !p.engine.isOpen() {
		return g.service(p, 1, g.priced(p), "service times of an engine that may be better")
	}
	return g.service(p, p.instances, g.priced(p), "service times of instances together")
}
