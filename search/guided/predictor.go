package guided

import (
	"slices"

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
// believed, and what pools may do which were not started, at their bounds. isOpen says that nothing is
// known of some engine that may be better. The caller must not change the list.
func (g *Guided) Rivals() (list []verdict.Rival, isOpen bool) {
	if len(g.pools) == 0 {
		return nil, false
	}
	d := g.decide()
	if d.rivals == nil {
		x := g.rivals()
		d.rivals = &x
	}
	return d.rivals.list, d.rivals.isOpen
}

// rivals are what was not measured and may be better.
type rivals struct {
	list   []verdict.Rival
	isOpen bool
}

func (g *Guided) rivals() (r rivals) {
	for _, b := range g.decide().survey.beliefs {
		if b.trials == 0 {
			if unknown := g.unknownOf(b.cell); unknown > 0 {
				b.residuals = slices.Clone(b.residuals)
				g.doubtMore(&b, unknown)
			}
			r.list = append(r.list, verdict.Rival{
				Candidate: g.named(b.cell), Load: g.settings.Space.Load.At(b.level),
				Score: posterior.Normal{Mean: b.score, Deviation: b.deviation()}, Holds: b.feasible,
			})
		}
	}
	known := g.experience()
	for _, e := range g.engines {
		if isHopeless(e, known) || e.door() == nil {
			continue
		}
		f, ok := g.foreseen(e)
		if !ok {
			r.isOpen = true
			continue
		}
		for _, p := range e.pools {
			if p.failure != "" || p.isReady() {
				continue
			}
			for b := range g.outlook(p, f) {
				r.list = append(r.list, verdict.Rival{
					Candidate: p.settings, Load: g.settings.Space.Load.At(b.level), IsPool: true,
					Score: posterior.Normal{Mean: b.score, Deviation: b.deviation()}, Holds: b.feasible,
				})
			}
		}
	}
	return r
}
