package guided

import (
	"cmp"
	"math"
	"slices"

	"tuner/search"
	"tuner/search/guided/belief"
	"tuner/search/guided/pools"
	"tuner/search/guided/predict"
	"tuner/search/guided/tuning"
	"tuner/search/verdict"
)

// survey holds the beliefs about all cells that may matter.
type survey struct {
	cells   []belief.Belief
	leader  int               // index of the best feasible cell; -1 without one, or if the default is better
	lead    float64           // score to beat; -Inf while nothing satisfies the constraints
	nearest *unmeasuredAtBest // the unmeasured cell that misses the constraints least at best; nil without a ready pool
	chance  float64           // while nothing satisfies the constraints: the highest probability that a cell does
}

// hasLead reports whether anything satisfies the constraints.
func (s *survey) hasLead() bool { return !math.IsInf(s.lead, -1) }

// leading returns the best feasible cell; false without one, or if the default is better.
func (s *survey) leading() (belief.Belief, bool) {
	if s.leader < 0 {
		return belief.Belief{}, false
	}
	return s.cells[s.leader], true
}

// unmeasuredAtBest is an unmeasured cell with its bounds.
type unmeasuredAtBest struct {
	pools.Cell
	most     float64 // score
	feasible float64
	lack     float64 // sum of the logarithms by which it misses constraints
}

// surveyor considers the measured cells, and those that could be better than the best.
type surveyor struct {
	load      search.LoadAxis
	tuning    tuning.Tuning
	pools     *pools.Pools
	predictor *predict.Predictor
	beliefs   *belief.Beliefs
	levels    []float64 // the loads of the grid

	answered float64         // the highest throughput of any trial under load, in inferences/s
	bounded  []belief.Belief // bounds of unmeasured cells; nil before the first request
}

func newSurveyor(s search.Settings, p *pools.Pools, x *predict.Predictor, b *belief.Beliefs, n tuning.Tuning) *surveyor {
	return &surveyor{load: s.Space.Load, tuning: n, pools: p, predictor: x, beliefs: b, levels: levels(s.Space.Load, n.Loads.Ratio)}
}

// levels returns the loads of the grid: the axis's own, or a geometric series of whole numbers if
// any is allowed.
func levels(axis search.LoadAxis, ratio float64) []float64 {
	first, last := axis.Levels[0], axis.Levels[len(axis.Levels)-1]
	if !axis.Any {
		return slices.Compact(slices.Clone(axis.Levels))
	}
	return between(axis, first, last, ratio)
}

// between lists levels from one to another; neighbours have a given ratio, or differ by one.
func between(axis search.LoadAxis, from, to, ratio float64) []float64 {
	list := []float64{from}
	for level := from; level < to; {
		level = axis.AtLeast(max(math.Floor(level)+1, math.Round(level*ratio)))
		list = append(list, min(level, to))
	}
	return list
}

// expire discards the bounds from before an event.
func (v *surveyor) expire() { v.bounded = nil }

// recordThroughput records the throughput of a trial under load, in inferences/s.
func (v *surveyor) recordThroughput(x float64) { v.answered = max(v.answered, x) }

// enter adds a belief to a survey.
func (v *surveyor) enter(s *survey, b belief.Belief) {
	s.cells = append(s.cells, b)
	s.chance = max(s.chance, b.Feasible)
	if v.beliefs.IsTrusted(b) && b.Score > s.lead {
		s.leader, s.lead = len(s.cells)-1, b.Score
	}
}

// survey starts with a score to beat. It does not simulate cells whose bounds are below the best.
func (v *surveyor) survey(lead float64) survey {
	s := survey{leader: -1, lead: lead}
	for _, p := range v.pools.All() {
		if !p.IsReady() {
			continue
		}
		for _, h := range p.Histories() {
			if c, found := p.Cell(h); found && !p.IsDead(c.Setting) && !v.beliefs.IsFar(c) {
				v.enter(&s, v.beliefs.Believe(c))
			}
		}
	}
	rest, most := v.promising(&s), v.tuning.Survey.Most
	if !s.hasLead() {
		slices.SortStableFunc(rest, v.byFeasibility)
		for len(rest) > 0 && len(s.cells) < most && !s.hasLead() {
			v.enter(&s, v.beliefs.Believe(rest[0].Cell))
			rest = rest[1:]
		}
	}
	slices.SortStableFunc(rest, func(a, b unmeasuredAtBest) int { return cmp.Compare(b.most, a.most) })
	for _, u := range rest {
		if u.most <= s.lead || len(s.cells) >= most {
			s.chance = max(s.chance, u.feasible) // the most likely one of the rest
			break
		}
		v.enter(&s, v.beliefs.Believe(u.Cell))
	}
	v.refine(&s)
	return s
}

// byFeasibility orders the most feasible first. Those that are practically certain are ordered by
// score.
func (v *surveyor) byFeasibility(a, b unmeasuredAtBest) int {
	trusted := v.beliefs.Confidence()
	return cmp.Or(cmp.Compare(min(b.feasible, trusted), min(a.feasible, trusted)), cmp.Compare(b.most, a.most))
}

// promising lists the unmeasured cells that may be better than the lead. It records the one nearest
// to the constraints.
func (v *surveyor) promising(s *survey) []unmeasuredAtBest {
	hasLead := s.hasLead()
	var list []unmeasuredAtBest
	for _, best := range v.bounds() {
		u := unmeasuredAtBest{best.Cell, v.upside(s, best), best.Feasible, best.Lack}
		if s.nearest == nil || isNearer(u, *s.nearest) {
			s.nearest = &u
		}
		switch {
		case u.feasible >= v.tuning.Beliefs.Possible && u.most > s.lead:
			list = append(list, u)
		case !hasLead:
			s.chance = max(s.chance, u.feasible)
		}
	}
	return list
}

// isNearer reports whether a cell has a smaller miss than another at best. If their bounds are
// equal, the lower load is nearer, since a latency beyond its bounds grows with the load.
func isNearer(a, b unmeasuredAtBest) bool {
	return cmp.Or(cmp.Compare(a.lack, b.lack), cmp.Compare(a.Level, b.Level), cmp.Compare(b.most, a.most)) < 0
}

// unmeasured yields the unmeasured cells of ready pools at the grid's levels.
func (v *surveyor) unmeasured(yield func(pools.Cell) bool) {
	for _, p := range v.pools.All() {
		if !p.IsReady() || v.beliefs.IsLeft(p) {
			continue
		}
		for i, b := range p.Batchers() {
			for _, level := range v.levels {
				if p.History(b.Key, level) == nil && !yield(pools.Cell{Pool: p, Setting: pools.Setting{Batcher: i, Level: level}}) {
					return
				}
			}
		}
	}
}

// bounds lists the bounds of the useful unmeasured cells, once after each event.
func (v *surveyor) bounds() []belief.Belief {
	if v.bounded == nil {
		v.bounded = []belief.Belief{}
		for c := range v.unmeasured {
			if v.isUseful(c) {
				v.bounded = append(v.bounded, v.beliefs.AtBest(c))
			}
		}
	}
	return v.bounded
}

// isUseful reports whether a cell needs consideration: it does not fail, a delay may help at its
// load, and no smaller batch is equal there. Batches are equal if all requests in flight fit into
// the smaller one.
func (v *surveyor) isUseful(c pools.Cell) bool {
	if c.Level > v.reach() {
		return false
	}
	b := c.Batcher()
	if b.Queue.Delay > 0 && v.predictor.IsSaturated(c) {
		return false
	}
	inFlight, _ := v.predictor.Demand(c.Level)
	return inFlight > float64(b.Below) && !c.Pool.IsDead(c.Setting)
}

// reach returns the highest request rate that is worth a trial. The path to the server may limit
// the rate far below the server's capacity, which service times do not show. Far beyond its
// capacity an open loop shows nothing else.
func (v *surveyor) reach() float64 {
	if !v.load.Rate || v.answered == 0 {
		return math.Inf(1)
	}
	rate := v.answered / float64(v.pools.ClientBatch())
	above := slices.IndexFunc(v.levels, func(level float64) bool { return level > rate })
	if above < 0 {
		return math.Inf(1)
	}
	return max(v.tuning.Loads.Stride*rate, v.levels[above])
}

// refine considers the levels between the grid's around the leader, if any level is allowed.
func (v *surveyor) refine(s *survey) {
	leader, ok := s.leading()
	if !ok || !v.load.Any {
		return
	}
	c := leader.Cell
	at, onGrid := slices.BinarySearch(v.levels, c.Level)
	above := at
	if onGrid {
		above++
	}
	from, to := v.levels[max(at-1, 0)], v.levels[min(above, len(v.levels)-1)]
	for _, level := range between(v.load, from, to, 1+verdict.Tie) {
		c.Level = level
		known := slices.ContainsFunc(s.cells, func(b belief.Belief) bool { return b.Cell == c })
		if !known && v.isUseful(c) {
			v.enter(s, v.beliefs.Believe(c))
		}
	}
}

// upside returns the score that a cell may reach against the leader's believed one.
func (v *surveyor) upside(s *survey, b belief.Belief) float64 {
	return b.Score + v.tuning.Beliefs.Clearly()*v.deviation(s, b)
}

// deviation returns the standard deviation of a cell's score against the lead. Common errors with
// the leader do not count.
func (v *surveyor) deviation(s *survey, b belief.Belief) float64 {
	if leader, ok := s.leading(); ok {
		return math.Sqrt(v.beliefs.Difference(b, leader))
	}
	return b.Deviation()
}

// gap returns the possible gain of a cell over the lead.
func (v *surveyor) gap(s *survey, b belief.Belief) float64 { return v.upside(s, b) - s.lead }

// byBelief orders trusted cells first, by score. The others follow by feasibility, and infeasible
// ones come last, by their miss.
func (v *surveyor) byBelief(a, b belief.Belief) int {
	rank := func(b belief.Belief) float64 {
		if b.Feasible < v.tuning.Beliefs.Possible {
			return 0
		}
		return min(b.Feasible, v.beliefs.Confidence())
	}
	x, y := rank(a), rank(b)
	if x == 0 && y == 0 {
		return cmp.Or(cmp.Compare(a.Lack, b.Lack), cmp.Compare(b.Score, a.Score))
	}
	return cmp.Or(cmp.Compare(y, x), cmp.Compare(b.Score, a.Score))
}
