package plan

import (
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/stats"
)

// How a member's load moves in the finals.
const (
	backOff   = 1.1  // least factor by which a load is lowered that turned out too high
	raise     = 1.25 // least factor by which a load is raised that keeps its distance from the limits
	raiseMax  = 2.0  // most
	nearLimit = 0.85 // of a limit: a load that comes so near to it is not raised
	worthIt   = 1.02 // a higher load counts when it is better by this
	precise   = 0.02 // half-width of an interval that is narrow enough, relative
)

// member is a configuration in the finals. Its load was sought with single short windows; here it goes down when it turns
// out too high, and up while there is room below the limits, so that the default and the best are compared each at its
// best.
type member struct {
	standing search.Standing // as found by the search
	current  float64         // level of its next trial
	ceiling  float64         // the lowest level that is known to miss the constraints, or to be no better
	levels   []confirmedLevel
	out      bool // it failed on a fresh launch
}

// confirmedLevel is what a member's final trials at one level yielded together.
type confirmedLevel struct {
	level  float64
	pooled measure.Measurement
	trials int
	logs   map[measure.Metric][]float64 // of each trial's value, for the metrics of the goal
}

func newMember(s search.Standing) member {
	return member{standing: s, current: s.Point.Level, ceiling: math.Inf(1)}
}

// at returns the entry of a level, nil when there was no trial.
func (m *member) at(level float64) *confirmedLevel {
	i := slices.IndexFunc(m.levels, func(l confirmedLevel) bool { return l.level == level })
	if i < 0 {
		return nil
	}
	return &m.levels[i]
}

// isOpen reports whether the member's load is not settled yet: it needs more trials at it.
func (m member) isOpen() bool {
	l := m.at(m.current)
	return !m.out && (l == nil || l.trials < confirmed)
}

// isBeyond reports whether the member's launches leave no doubt that it misses a constraint at its load.
func (m member) isBeyond(goal search.Goal) bool {
	l := m.at(m.current)
	return l != nil && l.isBeyond(goal)
}

// isBeyond reports whether the launches at the level leave no doubt that a constraint is missed there: its metric's interval over them is beyond.
func (l confirmedLevel) isBeyond(goal search.Goal) bool {
	return slices.ContainsFunc(goal.Constraints, func(c search.Constraint) bool {
		logs := l.logs[c.Metric]
		if len(logs) < confirmed {
			return false
		}
		e := stats.Mean(logs)
		return c.Max != nil && e.Lo > math.Log(*c.Max) || c.Min != nil && e.Hi < math.Log(*c.Min)
	})
}

// refutes reports whether the member's launches, enough of them, leave no doubt that it misses constraints at a level, or at a lower one, that no
// higher load keeps. Where there is doubt, what is believed from all windows knows more.
func (m member) refutes(level float64, s search.Settings) bool {
	return slices.ContainsFunc(m.levels, func(l confirmedLevel) bool {
		return l.level <= level && l.trials >= telling && l.isBeyond(s.Goal) && s.Goal.Judge(s.Space.Load.At(l.level), l.pooled).IsTooHigh()
	})
}

// isVague reports whether the spread between the member's launches leaves open what its figures are at its load: a metric of
// the objective to more than 2 %, or whether a constraint is kept. Windows of one launch know nothing of that spread. Nothing rests on the
// figures of one that clearly misses a constraint.
func (m member) isVague(goal search.Goal) bool {
	l := m.at(m.current)
	if m.out || l == nil || l.trials < confirmed {
		return !m.out
	}
	if m.isBeyond(goal) {
		return false
	}
	for _, t := range goal.Objective.Terms {
		if e := stats.Mean(l.logs[t.Metric]); (e.Hi-e.Lo)/2 > precise {
			return true
		}
	}
	for _, c := range goal.Constraints {
		e := stats.Mean(l.logs[c.Metric])
		for _, bound := range []*float64{c.Min, c.Max} {
			if bound != nil && e.Lo < math.Log(*bound) && math.Log(*bound) < e.Hi {
				return true
			}
		}
	}
	return false
}

// tell enters a trial of the member and settles the load of the next.
func (m *member) tell(e search.Event, goal search.Goal, axis search.LoadAxis) {
	level := e.Trial.Load.Level()
	if e.Measurement.Failure != nil {
		m.out = len(m.levels) == 0 || level <= m.levels[0].level
		m.ceiling = min(m.ceiling, level)
		if below, ok := m.bestLevel(goal, axis, level); ok {
			m.current = below
		}
		return
	}
	l := m.at(level)
	if l == nil {
		m.levels = append(m.levels, confirmedLevel{level: level, logs: map[measure.Metric][]float64{}})
		l = &m.levels[len(m.levels)-1]
	}
	l.trials++
	l.pooled.Windows = append(l.pooled.Windows, e.Measurement.Windows...)
	l.pooled.Memory = max(l.pooled.Memory, e.Measurement.Memory)
	for _, metric := range goal.Metrics() {
		if v, ok := goal.Estimate(e.Measurement, metric); ok && v.Value > 0 {
			l.logs[metric] = append(l.logs[metric], math.Log(v.Value))
		}
	}
	m.move(*l, goal, axis)
}

// move settles the load of the next trial after one at l.
func (m *member) move(l confirmedLevel, goal search.Goal, axis search.LoadAxis) {
	best, known := m.bestLevel(goal, axis, math.Inf(1))
	point := goal.Judge(axis.At(l.level), l.pooled)
	switch {
	case !point.Passes() && !known && !m.standing.Point.Passes():
		// It never kept the constraints: it stays where it misses them least.
	case !point.Passes() && l.trials < confirmed && isDoubtful(goal, point, l.pooled):
		// One launch may have had bad luck: it stays for another.
	case point.NeedsMore():
		if m.current = axis.AtLeast(l.level * max(backOff, 1+worst(point))); known {
			m.current = best
		}
	case !point.Passes():
		m.ceiling = min(m.ceiling, l.level)
		m.current = m.below(l.level, best, known, point, axis)
	case best != l.level: // a higher load that is no better, or a lower one
		if l.level > best {
			m.ceiling = min(m.ceiling, l.level)
		}
		m.current = best
	default:
		use := usage(goal, l.pooled)
		next := axis.AtLeast(l.level * min(max(nearLimit/use, raise), raiseMax))
		if goal.Objective.Rises() && use < nearLimit && next > l.level && next < m.ceiling {
			m.current = next
		}
	}
}

// below is the level to go on with after one that missed the constraints: between it and the best known, or that one itself
// when they are close.
func (m *member) below(level, best float64, known bool, missed search.Point, axis search.LoadAxis) float64 {
	if !known {
		return axis.AtMost(level / max(backOff, 1+worst(missed)))
	}
	between := axis.AtMost(math.Sqrt(best * level))
	if between < best*backOff || m.at(between) != nil {
		return best
	}
	return between
}

// bestLevel is the level below a limit with the best confirmed score within the constraints; a higher one must be worth it.
func (m *member) bestLevel(goal search.Goal, axis search.LoadAxis, below float64) (float64, bool) {
	point, found := m.bestPoint(goal.Objective, below, func(_ *member, l confirmedLevel) search.Point {
		return goal.Judge(axis.At(l.level), l.pooled)
	})
	return point.Level, found
}

// bestPoint is the best of the confirmed levels below a limit that keep the constraints, as judge sees them; a higher one must be worth it.
func (m *member) bestPoint(o search.Objective, below float64, judge func(*member, confirmedLevel) search.Point) (best search.Point, found bool) {
	levels := slices.Clone(m.levels)
	slices.SortFunc(levels, func(a, b confirmedLevel) int { return int(math.Copysign(1, a.level-b.level)) })
	for _, l := range levels {
		p := judge(m, l)
		if l.level < below && p.Passes() && (!found || o.Gain(best.Score, p.Score) > worthIt-1) {
			best, found = p, true
		}
	}
	return best, found
}

// best is the member at its best confirmed level, as judge sees it; false when it kept the constraints at none.
func (m *member) best(s search.Settings, judge func(*member, confirmedLevel) search.Point) (search.Standing, bool) {
	point, ok := m.bestPoint(s.Goal.Objective, math.Inf(1), judge)
	if !ok {
		return search.Standing{}, false
	}
	return search.Standing{Candidate: m.standing.Candidate, Load: s.Space.Load.At(point.Level), Point: point, Measurement: m.at(point.Level).pooled}, true
}

// isDoubtful reports whether the metrics of all constraints that a point misses may be within them, by their intervals.
func isDoubtful(goal search.Goal, p search.Point, m measure.Measurement) bool {
	return !slices.ContainsFunc(p.Misses, func(miss search.Miss) bool {
		e, ok := goal.Estimate(m, miss.Constraint.Metric)
		return !ok || miss.Constraint.Violation(e.Lo) > 0 && miss.Constraint.Violation(e.Hi) > 0
	})
}

// usage is the largest share of an upper limit that a measurement takes up and more load would take up; 0 without limits.
func usage(goal search.Goal, m measure.Measurement) float64 {
	use := 0.0
	for _, c := range goal.Constraints {
		if e, ok := m.Estimate(c.Metric); ok && c.Max != nil && !search.FallsWithLoad(c.Metric) {
			use = max(use, e.Value/(*c.Max))
		}
	}
	return use
}

// worst is the largest violation of a point, at most 1: no load is lowered to less than half at once.
func worst(p search.Point) float64 {
	v := 0.0
	for _, m := range p.Misses {
		v = max(v, m.Violation)
	}
	return min(v, 1)
}
