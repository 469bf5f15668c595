package guided

import (
	"tuner/search"
	"tuner/search/guided/belief"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// rivals are the unmeasured cells that may be better.
type rivals struct {
	list   []verdict.Rival
	isOpen bool
}

func (g *Guided) rivals(s *survey) (r rivals) {
	rival := func(c search.Candidate, b belief.Belief, isPool bool) {
		r.list = append(r.list, verdict.Rival{
			Candidate: c, Load: g.settings.Space.Load.At(b.Level), IsPool: isPool,
			Score: posterior.Normal{Mean: b.Score, Deviation: b.Deviation()}, Holds: b.Feasible,
		})
	}
	for _, b := range s.cells {
		if b.Trials == 0 {
			rival(g.pools.Named(b.Cell), g.beliefs.Stated(b), false)
		}
	}
	known := g.pools.Experience()
	for _, e := range g.pools.Engines() {
		if known.IsHopeless(e) || e.EntryPool() == nil {
			continue
		}
		f, ok := g.predictor.Forecast(e)
		if !ok {
			r.isOpen = true
			continue
		}
		for _, p := range e.Pools() {
			if !p.IsUnopened() {
				continue
			}
			for b := range g.beliefs.Outlook(p, f) {
				rival(p.Settings(), b, true)
			}
		}
	}
	return r
}
