package guided

import (
	"math"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// cellOf is the cell of a configuration at a load, false where its pool is not open.
func (g *Guided) cellOf(c search.Candidate, load measure.Load) (cell, bool) {
	p, known := g.byKey[c.PoolKey()]
	if !known || !p.isReady() {
		return cell{}, false
	}
	if c.IsDefault() {
		c = g.twin
	}
	at, found := p.find(c.Key())
	return cell{p, setting{at, load.Level()}}, found
}

// Rivals lists what was not measured and may be better than the best: cells of open pools as they are
// believed, and the most that pools may do which were not started. isOpen says that nothing is known of
// some engine that may be better.
func (g *Guided) Rivals() (list []verdict.Rival, isOpen bool) {
	if len(g.pools) == 0 {
		return nil, false
	}
	for _, b := range g.decide().survey.beliefs {
		if b.trials == 0 {
			list = append(list, verdict.Rival{
				Candidate: g.named(b.cell), Load: g.settings.Space.Load.At(b.level),
				Score: posterior.Normal{Mean: b.score, Deviation: b.deviation()}, Holds: b.feasible,
			})
		}
	}
	known, all := g.experience(), survey{leader: -1, lead: math.Inf(-1)}
	for _, e := range g.engines {
		if isHopeless(e, known) || e.door() == nil {
			continue
		}
		if _, ok := g.foreseen(e); !ok {
			isOpen = true
			continue
		}
		means := g.prospects(e, width{least: trusted}, &all)
		highs := g.prospects(e, width{kappa: 1, least: trusted}, &all) // of the same pools, a deviation above
		for i, x := range means {
			if !math.IsInf(x.most, -1) {
				list = append(list, verdict.Rival{
					Candidate: x.pool.settings, Score: posterior.Normal{Mean: x.most, Deviation: highs[i].most - x.most}, Holds: 1,
				})
			}
		}
	}
	return list, isOpen
}
