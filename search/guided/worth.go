package guided

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"tuner/search"
	"tuner/search/guided/belief"
	"tuner/search/guided/tuning"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// appraiser computes the worth of trials.
type appraiser struct {
	settings search.Settings
	tuning   tuning.Tuning
	beliefs  *belief.Beliefs
	schedule *schedule
}

// rate returns the highest gain of trials of a cell per second. The first trial takes `first`
// seconds. 0 if none is worth its time.
func (a appraiser) rate(first float64, gain func(trials int) float64) float64 {
	again, best, least := a.schedule.again(), 0.0, a.tuning.Worth.Least(a.settings.Budget != search.Budget{})
	for _, n := range a.tuning.Worth.Repeats {
		if x := gain(n); x > a.settings.Goal.Objective.Weight()*least {
			best = max(best, x/(first+float64(n-1)*again))
		}
	}
	return best
}

// gain returns the worth of the next trials of a cell: their expected gain over the lead. Without a
// lead it is the probability that the cell then leads, if that matters.
func (a appraiser) gain(s *survey, b belief.Belief, trials int) float64 {
	if s.hasLead() {
		return a.lesson(s, b, trials)
	}
	if p := a.settles(b, trials); p >= a.tuning.Beliefs.Possible {
		return p
	}
	return 0
}

// lesson returns the expected gain of the next trials of a cell over the lead. It is the gain of
// the later best (the knowledge gradient of Frazier, Powell and Dayanik, INFORMS Journal on
// Computing 21, 2009). If two cells are within a percent, with noise of ten, a trial is worth
// little, however likely either is the better one. A faster machine has higher throughput and
// shorter latencies, so their errors are correlated. A cell that was measured in a slow minute may
// be better and keep its limits.
func (a appraiser) lesson(s *survey, b belief.Belief, trials int) float64 {
	moves := max(a.moves(s, b, b, trials), posterior.Least)
	least, others := a.beliefs.Needed(b, trials)
	return a.surplus(s, b, moves, least) * others
}

// lessonOfLeader returns the expected gain of the next trials of the leader: another may turn out
// to be better. It considers one other at a time, so it is a lower bound.
func (a appraiser) lessonOfLeader(s *survey, trials int) float64 {
	leader, most := s.cells[s.leader], 0.0
	for i, b := range s.cells {
		if i != s.leader && a.beliefs.IsTrusted(b) {
			most = max(most, a.surplus(s, b, max(a.moves(s, leader, b, trials), posterior.Least), math.Inf(-1)))
		}
	}
	return most
}

// moves returns the standard deviation by which the next trials of a cell, the leader or another,
// move a cell's score against the leader's.
func (a appraiser) moves(s *survey, of, b belief.Belief, trials int) float64 {
	if leader, ok := s.leading(); ok {
		return a.beliefs.MovesOver(of, b, leader, trials)
	}
	return a.beliefs.Moves(of, trials)
}

// surplus returns the expected gain over the lead of a cell whose score trials move by a deviation.
// It counts only results that exceed the belief by `least` deviations. Another load of the leader's
// configuration counts only if it is better by more than a tie. In an open loop the throughput
// cannot exceed the offered rate.
func (a appraiser) surplus(s *survey, b belief.Belief, moves, least float64) float64 {
	if leader, ok := s.leading(); ok && leader.SharesCandidate(b.Cell) {
		least = max(least, (s.lead+math.Log1p(verdict.Tie)*a.settings.Goal.Objective.Weight()-b.Score)/moves)
	}
	beyond := func(lead float64) float64 {
		return posterior.Normal{Mean: b.Score - lead, Deviation: moves}.Surplus(least)
	}
	gain := beyond(s.lead)
	if highest := verdict.HighestScore(a.settings.Goal, a.settings.Space.Load.At(b.Level)); !math.IsInf(highest, 1) {
		gain -= beyond(max(s.lead, highest))
	}
	return gain
}

// settles returns the probability that, after the next trials of a cell, it keeps the constraints
// with the confidence of a leader.
func (a appraiser) settles(b belief.Belief, trials int) float64 {
	least, others := a.beliefs.Needed(b, trials)
	return distuv.UnitNormal.CDF(-least) * others
}
