package guided

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// The relative gain to be expected of trials below which none is made.
const (
	// worthIt is that without a budget. With 0.001, 13 of 20 campaigns on the machine of TestFindsTheBest end within 2 % of the best, with
	// 0.0003 15 or more.
	worthIt = 0.0003
	// anything is that within one, which is there to be used. With 0.0001, campaigns of 600 s on the recordings ended after 309 s in the
	// mean, and 0.79 of the answers were right; with this after 381 s, and 0.89.
	anything = 1e-6
)

// repeats are the numbers of trials that a cell is considered with. One alone may teach nothing where several would decide (Frazier and
// Powell, Paradoxes in Learning and the Marginal Value of Information, Decision Analysis 7, 2010). Eight leave a third of one trial's error.
var repeats = [...]int{1, 2, 4, 8}

// rate is the most that trials of a cell may bring per second, of which the first takes so many seconds; 0 where nothing is worth it.
func (g *Guided) rate(first float64, gain func(trials int) float64) float64 {
	again, best, least := (g.window() + g.costs.warmUp.or(guessedWarmUp)).Seconds(), 0.0, anything
	if g.settings.Budget == (search.Budget{}) {
		least = worthIt
	}
	for _, n := range repeats {
		if x := gain(n); x > g.settings.Goal.Objective.Weight()*least {
			best = max(best, x/(first+float64(n-1)*again))
		}
	}
	return best
}

// lesson is what the next trials of a cell are expected to bring over the lead: the gain of what will then be thought best (the knowledge
// gradient of Frazier, Powell and Dayanik, INFORMS Journal on Computing 21, 2009). Of two that are within a percent, and as noisy as ten,
// a trial teaches little, however likely either is to be the better. What makes a machine faster raises throughput and shortens latencies,
// so these err together. A cell that was measured in a slow minute may be better and keep its limits.
func (g *Guided) lesson(s *survey, b belief, trials int) float64 {
	moves := max(g.tellsOf(s, b, b, trials), floor)
	least, others := g.needed(b, trials)
	return g.surplus(s, b, moves, least) * others
}

// lessonOfLeader is what the next trials of the leader are expected to bring: that another turns out to be better. It counts the score of one
// other at a time, so it is a lower bound.
func (g *Guided) lessonOfLeader(s *survey, trials int) float64 {
	leader, most := s.beliefs[s.leader], 0.0
	for i, b := range s.beliefs {
		if i != s.leader && b.feasible >= g.trusted {
			most = max(most, g.surplus(s, b, max(g.tellsOf(s, leader, b, trials), floor), math.Inf(-1)))
		}
	}
	return most
}

// surplus is the gain over the lead to be expected of a cell whose score trials move by a deviation, and that counts only where they show it
// faster than believed by least deviations. Another load of the leader's configuration is another answer only where it is better by more
// than a tie. In an open loop the throughput cannot exceed the offered rate.
func (g *Guided) surplus(s *survey, b belief, moves, least float64) float64 {
	if s.leader >= 0 && s.beliefs[s.leader].isOf(b.cell) {
		least = max(least, (s.lead+math.Log1p(verdict.Tie)*g.settings.Goal.Objective.Weight()-b.score)/moves)
	}
	beyond := func(lead float64) float64 {
		return posterior.Normal{Mean: b.score - lead, Deviation: moves}.Surplus(least)
	}
	gain := beyond(s.lead)
	_, rate := g.demand(b.level)
	if m := g.models[0]; len(g.settings.Goal.Objective.Terms) == 1 && m.isRate() && !math.IsInf(rate, 1) {
		gain -= beyond(max(s.lead, m.weight*g.ofRate(m.metric, rate)))
	}
	return gain
}

// gain is what the next trials of a cell are worth: over the lead, what they are expected to bring. Without a lead it is the probability
// that the cell then leads, where that matters.
func (g *Guided) gain(s *survey, b belief, trials int) float64 {
	if !math.IsInf(s.lead, -1) {
		return g.lesson(s, b, trials)
	}
	if p := g.settles(b, trials); p >= possible {
		return p
	}
	return 0
}

// settles is the probability that, after the next trials of a cell, it keeps the constraints as surely as a leader must.
func (g *Guided) settles(b belief, trials int) float64 {
	least, others := g.needed(b, trials)
	return distuv.UnitNormal.CDF(-least) * others
}

// needed is how much faster than believed trials must show a cell, in deviations of what they tell. From there on it keeps its limits as
// surely as a leader must. others is the probability that it keeps those limits that speed does not help. What trials tell moves a mean,
// and the rest of the variance remains.
func (g *Guided) needed(b belief, trials int) (deviations, others float64) {
	deviations, others = math.Inf(-1), 1
	for k, m := range g.models {
		if !m.isKnown || len(m.limits) == 0 {
			continue
		}
		variance, told := b.residuals[k].Variance, g.tells(k, b, trials)
		room := g.sure * math.Sqrt(max(variance-told, 0))
		need := func(way, misses float64) { // way: of the metric, to keep the limit
			if d := (misses + room) / max(math.Sqrt(told), floor); m.direction()*way > 0 {
				deviations = max(deviations, d)
			} else {
				others *= distuv.UnitNormal.CDF(-d)
			}
		}
		for _, limit := range m.limits {
			if limit.Max != nil {
				need(-1, b.means[k]-math.Log(max(*limit.Max, floor)))
			}
			if limit.Min != nil {
				need(1, math.Log(max(*limit.Min, floor))-b.means[k])
			}
		}
	}
	return deviations, others
}

// limits is how many bounds the constraints have on metrics of which something is known. They share alike what a leader may miss.
func (g *Guided) limits() (n int) {
	for _, m := range g.models {
		for _, limit := range m.limits {
			for _, bound := range []*float64{limit.Min, limit.Max} {
				if m.isKnown && bound != nil {
					n++
				}
			}
		}
	}
	return n
}

// tells is what the next trials of a cell tell of a metric: the variance by which that of its logarithm falls. Memory is seen when the
// pool is opened, and no trial tells more of it.
func (g *Guided) tells(k int, b belief, trials int) float64 {
	m, variance := g.models[k], b.residuals[k].Variance
	switch {
	case !m.isMemory():
		return min(m.ahead(g.runs(b.pool)).Tells(b.residuals[k], trials), variance)
	case b.pool == nil || b.pool.isReady():
		return 0
	}
	return variance
}

// tellsOf is the standard deviation by which the next trials of a cell, the leader or another, move the score of a cell over the leader's.
func (g *Guided) tellsOf(s *survey, of, b belief, trials int) float64 {
	return math.Sqrt(g.variances(func(k int) float64 {
		m := g.models[k]
		if m.isMemory() || s.leader < 0 {
			return g.tells(k, of, trials)
		}
		x, y, leader := of.residuals[k], b.residuals[k], s.beliefs[s.leader].residuals[k]
		apart := x.Variance - g.covariance(m, y, leader)
		if of.cell != s.beliefs[s.leader].cell {
			y = leader
		}
		return m.ahead(g.runs(of.pool)).TellsBetween(x, y, apart, trials)
	}))
}
