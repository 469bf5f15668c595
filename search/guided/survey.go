package guided

import (
	"cmp"
	"math"
	"slices"

	"tuner/search/posterior"
)

// possible is the probability to keep the constraints below which a cell is out.
const possible = 0.02

// clearly is by how many standard deviations something must miss what matters for it not to matter.
const clearly = 3

// The size of a survey.
const (
	anchors = 30   // cells of the highest probability to be feasible with which it begins where nothing measured leads; more until something does
	surveys = 1500 // cells at most
)

// survey is what is believed of all cells that may matter.
type survey struct {
	beliefs []belief
	leader  int     // index of the best cell that is feasible; -1: there is none, or the default is better
	lead    float64 // score to beat; -Inf while nothing satisfies the constraints
	nearest *hope   // of the cells that are not measured, the one that misses the constraints least at best; nil without a ready pool
	chance  float64 // while nothing satisfies the constraints: the highest probability that a cell does
}

// hope is a cell at its best.
type hope struct {
	cell
	most     float64 // score
	feasible float64
	lack     float64 // sum of the logarithms by which it misses constraints
}

// add enters a belief in a survey.
func (g *Guided) add(s *survey, b belief) {
	s.beliefs = append(s.beliefs, b)
	s.chance = max(s.chance, b.feasible)
	if b.feasible >= g.trusted && b.score > s.lead {
		s.leader, s.lead = len(s.beliefs)-1, b.score
	}
}

// survey looks at the cells that were measured, and at those that could be better than the best: it simulates none whose bounds
// say that it is not.
func (g *Guided) survey() survey {
	s := survey{leader: -1, lead: g.defaultScore()}
	for _, p := range g.pools {
		if !p.isReady() {
			continue
		}
		for _, t := range p.tracks {
			at, found := p.find(t.key)
			if c := (cell{p, setting{at, t.level}}); found && !p.isDead(c.setting) && !g.isFar(c) {
				g.add(&s, g.believe(c))
			}
		}
	}
	hopes := g.hopes(&s)
	if math.IsInf(s.lead, -1) {
		slices.SortStableFunc(hopes, g.byFeasibility)
		for n := 0; len(hopes) > 0 && len(s.beliefs) < surveys && (n < anchors || math.IsInf(s.lead, -1)); n++ {
			g.add(&s, g.believe(hopes[0].cell))
			hopes = hopes[1:]
		}
	}
	slices.SortStableFunc(hopes, func(a, b hope) int { return cmp.Compare(b.most, a.most) })
	for _, h := range hopes {
		if h.most <= s.lead || len(s.beliefs) >= surveys {
			s.chance = max(s.chance, h.feasible) // it is the most likely one of the rest
			break
		}
		g.add(&s, g.believe(h.cell))
	}
	g.refine(&s)
	return s
}

// isFar reports whether so many others are nearer to the best that the posterior keeps a cell apart.
func (g *Guided) isFar(c cell) bool {
	return g.known.IsApart(posterior.Cell{Candidate: g.named(c), Load: g.settings.Space.Load.At(c.level)})
}

// isLeft reports whether all that was measured of a pool is far from the best.
func (g *Guided) isLeft(p *pool) bool {
	return len(p.tracks) > 0 && !slices.ContainsFunc(p.tracks, func(t *track) bool {
		at, found := p.find(t.key)
		return !found || !g.isFar(cell{p, setting{at, t.level}})
	})
}

// byFeasibility orders the most feasible first, all that are as good as certain by their score.
func (g *Guided) byFeasibility(a, b hope) int {
	return cmp.Or(cmp.Compare(min(b.feasible, g.trusted), min(a.feasible, g.trusted)), cmp.Compare(b.most, a.most))
}

// hopes lists the cells that are not measured and may be better than the lead. It notes the one that is nearest to the constraints.
func (g *Guided) hopes(s *survey) []hope {
	isNone := math.IsInf(s.lead, -1)
	var list []hope
	for _, best := range g.imagined() {
		h := hope{best.cell, g.upside(s, best), best.feasible, best.lack}
		if s.nearest == nil || isNearer(h, *s.nearest) {
			s.nearest = &h
		}
		switch {
		case h.feasible >= possible && h.most > s.lead:
			list = append(list, h)
		case isNone:
			s.chance = max(s.chance, h.feasible)
		}
	}
	return list
}

// isNearer reports whether a cell lacks less than another at best. Where their bounds do not tell them apart the lower load is nearer: beyond its
// bounds a latency grows with it.
func isNearer(a, b hope) bool {
	return cmp.Or(cmp.Compare(a.lack, b.lack), cmp.Compare(a.level, b.level), cmp.Compare(b.most, a.most)) < 0
}

// unmeasured yields the cells of ready pools at the grid's levels that were not measured.
func (g *Guided) unmeasured(yield func(cell) bool) {
	for _, p := range g.pools {
		if !p.isReady() || g.isLeft(p) {
			continue
		}
		for i := range p.batchers {
			for _, level := range g.levels {
				if p.track(p.batchers[i].key, level) == nil && !yield(cell{p, setting{i, level}}) {
					return
				}
			}
		}
	}
}

// imagined lists what bounds the useful cells that were not measured, once after each event.
func (g *Guided) imagined() []belief {
	if g.bounded == nil {
		g.bounded = []belief{}
		for c := range g.unmeasured {
			if g.isUseful(c) {
				b := belief{means: make([]float64, len(g.models)), residuals: make([]posterior.Residual, len(g.models))}
				g.imagine(c, &b)
				g.bounded = append(g.bounded, b)
			}
		}
	}
	return g.bounded
}

// imagine is believe with what bounds the cell instead of its simulation.
func (g *Guided) imagine(c cell, b *belief) {
	b.cell = c
	o := c.pool.outline
	g.atBest(o, o.upTo(c.batcher().queue.MaxBatch), c.level, b.means)
	g.expect(g.place(c), max(c.batcher().queue.MaxBatch, 1), c.pool, b)
}

// refine looks at the levels between the grid's around the leader, where any level is allowed.
func (g *Guided) refine(s *survey) {
	if s.leader < 0 || !g.settings.Space.Load.Any {
		return
	}
	c := s.beliefs[s.leader].cell
	at, onGrid := slices.BinarySearch(g.levels, c.level)
	above := at
	if onGrid {
		above++
	}
	from, to := g.levels[max(at-1, 0)], g.levels[min(above, len(g.levels)-1)]
	for _, level := range between(g.settings.Space.Load, from, to, fine) {
		c.level = level
		known := slices.ContainsFunc(s.beliefs, func(b belief) bool { return b.cell == c })
		if !known && g.isUseful(c) {
			g.add(s, g.believe(c))
		}
	}
}

// upside is the score that a cell may have beside the leader's believed one.
func (g *Guided) upside(s *survey, b belief) float64 {
	return b.score + clearly*g.deviation(s, b)
}

// deviation is that of a cell's score from the lead: what it has in common with the leader cannot tell them apart.
func (g *Guided) deviation(s *survey, b belief) float64 {
	if s.leader < 0 {
		return b.deviation()
	}
	return math.Sqrt(g.difference(b, s.beliefs[s.leader]))
}

// gap is by how much a cell may be better than the lead.
func (g *Guided) gap(s *survey, b belief) float64 { return g.upside(s, b) - s.lead }
