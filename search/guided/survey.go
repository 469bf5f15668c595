package guided

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
)

// width is how far the search looks for something better before it calls itself done.
type width struct {
	kappa     float64 // standard deviations by which a challenger may be better than believed
	least     float64 // probability with which it must satisfy the constraints
	tolerance float64 // expected gain that is not worth a trial, relative
}

// How often the search looks further when it has converged.
const (
	widenings = 3
	widest    = 7 // within a budget, which is there to be used while anything that is not certain may be better
)

// last is how often the search looks further before it is over.
func (g *Guided) last() int {
	if g.settings.Budget == (search.Budget{}) {
		return widenings
	}
	return widest
}

// wide is the width after so many widenings.
func wide(times int) width {
	n := float64(times)
	return width{kappa: 1.6 + 0.5*n, least: 0.10 * math.Pow(0.6, n), tolerance: 0.002 * math.Pow(0.5, n)}
}

// What a survey takes for feasible.
const (
	trusted  = 0.80 // probability from which on a cell may lead
	possible = 0.02 // below which it is out
)

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

func (s *survey) add(b belief) {
	s.beliefs = append(s.beliefs, b)
	s.chance = max(s.chance, b.feasible)
	if b.feasible >= trusted && b.score > s.lead {
		s.leader, s.lead = len(s.beliefs)-1, b.score
	}
}

// survey looks at the cells that were measured, and at those that could be better than the best: it simulates none whose bounds
// say that it is not.
func (g *Guided) survey(w width) survey {
	s := survey{leader: -1, lead: g.defaultScore()}
	for _, p := range g.pools {
		if !p.isReady() {
			continue
		}
		for _, t := range p.tracks {
			at, found := p.find(t.key)
			if c := (cell{p, setting{at, t.level}}); found && !p.isDead(c.setting) {
				s.add(g.believe(c))
			}
		}
	}
	hopes := g.hopes(w, &s)
	if math.IsInf(s.lead, -1) {
		slices.SortStableFunc(hopes, byFeasibility)
		for n := 0; len(hopes) > 0 && len(s.beliefs) < surveys && (n < anchors || math.IsInf(s.lead, -1)); n++ {
			s.add(g.believe(hopes[0].cell))
			hopes = hopes[1:]
		}
	}
	slices.SortStableFunc(hopes, func(a, b hope) int { return cmp.Compare(b.most, a.most) })
	for _, h := range hopes {
		if h.most <= s.lead || len(s.beliefs) >= surveys {
			s.chance = max(s.chance, h.feasible) // it is the most likely one of the rest
			break
		}
		s.add(g.believe(h.cell))
	}
	g.refine(&s)
	return s
}

// byFeasibility orders the most feasible first, all that are as good as certain by their score.
func byFeasibility(a, b hope) int {
	return cmp.Or(cmp.Compare(min(b.feasible, 0.95), min(a.feasible, 0.95)), cmp.Compare(b.most, a.most))
}

// hopes lists the cells that are not measured and may be better than the lead. It notes the one that is nearest to the constraints.
func (g *Guided) hopes(w width, s *survey) []hope {
	least, isNone := w.least, math.IsInf(s.lead, -1)
	if isNone {
		least = min(least, possible)
	}
	var list []hope
	for _, best := range g.imagined() {
		h := hope{best.cell, g.upside(w.kappa, s, best), best.feasible, best.lack}
		if s.nearest == nil || isNearer(h, *s.nearest) {
			s.nearest = &h
		}
		switch {
		case h.feasible >= least && h.most > s.lead:
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
		if !p.isReady() {
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
			s.add(g.believe(c))
		}
	}
}

// upside is the score that a cell may have beside the leader's believed one.
func (g *Guided) upside(deviations float64, s *survey, b belief) float64 {
	return b.score + deviations*g.deviation(s, b)
}

// deviation is that of a cell's score from the lead: what it has in common with the leader cannot tell them apart.
func (g *Guided) deviation(s *survey, b belief) float64 {
	if s.leader < 0 {
		return b.deviation()
	}
	all, _ := g.difference(b, s.beliefs[s.leader])
	return math.Sqrt(all)
}

// gap is by how much a cell may be better than the lead.
func (g *Guided) gap(w width, s *survey, b belief) float64 { return g.upside(w.kappa, s, b) - s.lead }

// improvement is the expected gain of a cell over the lead where it turns out to be better and to satisfy the constraints (Jones, Schonlau
// and Welch, Efficient Global Optimization of Expensive Black-Box Functions, 1998, with the leader as uncertain as it is). Whatever makes
// a machine or a pool faster than believed raises the throughput and shortens the latencies, so that these err together: a cell that was
// measured in a slow minute may at once be better and keep its limits. Of an open loop's throughput what is offered is the most.
func (g *Guided) improvement(s *survey, b belief) float64 {
	return g.expected(s, b, g.deviation(s, b), func(k int) float64 { return math.Sqrt(b.residuals[k].Variance) })
}

// lesson is the part of that which the next trial of the cell is expected to bring: the gain of what will then be thought best (the knowledge gradient
// of Frazier, Powell and Dayanik, INFORMS Journal on Computing 21, 2009). Of two that are within a percent, and as noisy as ten, a trial teaches
// little, however likely either is to be the better.
func (g *Guided) lesson(s *survey, b belief) float64 {
	shared := b.open // covariance of the cell and of its distance from the lead
	if s.leader >= 0 {
		leader := s.beliefs[s.leader]
		_, open := g.difference(b, leader)
		shared = (b.open - leader.open + open) / 2
	}
	_, noise := g.variances(g.trialVariance)
	return g.expected(s, b, math.Abs(shared)/math.Sqrt(max(b.open+noise, floor)), func(k int) float64 {
		v := b.residuals[k].Variance
		return v / math.Sqrt(max(v+g.trialVariance(k), floor))
	})
}

// trialVariance is that of a metric's logarithm in a trial of the next windows' length.
func (g *Guided) trialVariance(k int) float64 {
	if m := g.models[k]; !m.isMemory() {
		return m.view.TrialVariance(g.window().Seconds())
	}
	return 0
}

// expected is the gain over the lead to be expected of a score with a deviation, and of metrics with theirs.
func (g *Guided) expected(s *survey, b belief, deviation float64, of func(k int) float64) float64 {
	deviation = max(deviation, floor)
	least, others := g.needed(b, of)
	beyond := func(lead float64) float64 {
		z := max((lead-b.score)/deviation, least)
		return (b.score-lead)*normal(-z) + deviation*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)
	}
	_, rate := g.demand(b.level)
	gain := beyond(s.lead)
	if m := g.models[0]; len(g.settings.Goal.Objective.Terms) == 1 && m.isRate() && !math.IsInf(rate, 1) {
		gain -= beyond(max(s.lead, m.weight*g.ofRate(m.metric, rate)))
	}
	return gain * others
}

// needed is by how many standard deviations a cell must be faster than believed to keep its limits on throughput and latencies, and the
// probability that it keeps the others.
func (g *Guided) needed(b belief, of func(k int) float64) (deviations, others float64) {
	deviations, others = math.Inf(-1), 1
	for k, m := range g.models {
		if !m.isKnown {
			continue
		}
		deviation := max(of(k), floor)
		for _, limit := range m.limits {
			switch {
			case !m.isPredicted:
				others *= satisfaction(limit, b.means[k], math.Sqrt(b.residuals[k].Variance))
			case limit.Max != nil && m.metric != measure.Throughput:
				deviations = max(deviations, (b.means[k]-math.Log(max(*limit.Max, floor)))/deviation)
			case limit.Min != nil && m.metric == measure.Throughput:
				deviations = max(deviations, (math.Log(max(*limit.Min, floor))-b.means[k])/deviation)
			}
		}
	}
	return deviations, others
}
