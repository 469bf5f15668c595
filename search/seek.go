package search

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"tuner/measure"
)

// The figures of a seek. On a shared machine, windows of the same configuration that are minutes apart differ by a standard
// deviation of about 10 % in throughput (measured on 756 points of a real Triton, in two passes of 1.2 s windows).
const (
	near        = 0.10 // closer than this to the leader, a configuration may be better than it
	worthwhile  = 0.05 // gain for which the next level is tried
	refinement  = 0.02 // possible gain for which the space between two levels is searched
	resolution  = 1.25 // ratio of neighbouring levels below which nothing is searched between them
	fineRates   = 1.05 // the same of request rates: an open loop's throughput is the rate, and not near saturation whatever the load
	headroom    = 1.25 // by how much throughput may still grow beyond the knee
	cautious    = 0.95 // part of the way to the predicted limit that is tried
	retreat     = 4.0  // factor by which the load is lowered after a hang
	seekMaximum = 8    // points of one seek
)

// Seek finds the best load of one configuration within the constraints, in few trials. It relies on what holds in a
// closed loop: throughput does not fall with concurrency, nor does latency, and throughput grows at most in proportion to
// concurrency. So a load that fails bounds the throughput of every lower load from above, and a configuration that cannot
// come near the leader is given up early.
type Seek struct {
	Axis LoadAxis
	Goal Goal
	Knee float64 // where the search starts: the concurrency that saturates the configuration
}

// Step is the next load to try, and in a few words why.
type Step struct {
	Level float64
	Why   string
}

// move is a step, with the score that no load in its direction can exceed.
type move struct {
	Step
	ceiling float64
}

// Next returns the next load to try, given the points so far in the order of their trials and the score to beat (-Inf when
// there is none). It is false when the best load is found as well as is worth while, or when there is no hope.
func (s Seek) Next(points []Point, lead float64) (Step, bool) {
	if len(points) == 0 {
		return s.start(), true
	}
	if len(points) >= seekMaximum {
		return Step{}, false
	}
	if slices.ContainsFunc(points, func(p Point) bool { return direction(p) == never }) {
		return s.afterFailure(points)
	}
	m, ok := s.move(newSurvey(points))
	tried := slices.ContainsFunc(points, func(p Point) bool { return p.Level == m.Level })
	if !ok || tried || s.gain(lead, m.ceiling) < -near {
		return Step{}, false
	}
	return m.Step, true
}

// start is the first load: the knee, or the lowest load when load only makes the objective worse.
func (s Seek) start() Step {
	switch {
	case !s.Goal.Objective.Rises():
		return Step{s.Axis.first(), "lowest load"}
	case s.Axis.Rate:
		return Step{s.Axis.Levels[(len(s.Axis.Levels)-1)/2], "middle of the rates"}
	}
	return Step{s.Axis.AtLeast(s.Knee), "load that saturates it"}
}

// afterFailure gives a configuration that failed at its only load one more chance, at a much lower one, when the load may
// have been the reason.
func (s Seek) afterFailure(points []Point) (Step, bool) {
	p := points[0]
	level := s.Axis.AtMost(p.Level / retreat)
	if len(points) > 1 || level >= p.Level || !loadMayBeTheReason(p) {
		return Step{}, false
	}
	return Step{level, "much lower load after a failure"}, true
}

func loadMayBeTheReason(p Point) bool {
	if p.Failure != nil {
		return p.Failure.Stage == measure.StageHang || p.Failure.Stage == measure.StageErrors
	}
	return slices.ContainsFunc(p.Misses, func(m Miss) bool { return isMemory(m.Constraint.Metric) && !m.Missing })
}

// isMemory reports whether a metric hardly depends on the load.
func isMemory(m measure.Metric) bool { return m == measure.Memory || m == measure.GPUMemory }

// towards is where a point sends the search.
type towards int

const (
	here   towards = iota // it passes
	lower                 // a metric exceeds its maximum, and metrics rise with the load but for FallsWithLoad
	higher                // a metric is below its minimum
	never                 // no load helps, as far as can be known
)

// NeedsMore reports whether a higher load can satisfy the constraints that the point misses, and no lower one.
func (p Point) NeedsMore() bool { return direction(p) == higher }

// direction says which loads can satisfy the constraints that a point misses.
func direction(p Point) towards {
	if !p.Scored {
		return never
	}
	result := here
	for _, m := range p.Misses {
		wanted, tooMuch := higher, m.Constraint.Max != nil && m.Value > *m.Constraint.Max
		if tooMuch != FallsWithLoad(m.Constraint.Metric) {
			wanted = lower
		}
		if m.Missing || isMemory(m.Constraint.Metric) || (result != here && result != wanted) {
			return never
		}
		result = wanted
	}
	return result
}

// survey is a configuration's points by where they send the search, each ascending by level.
type survey struct{ passing, lower, higher []Point }

func newSurvey(points []Point) survey {
	sorted := slices.SortedStableFunc(slices.Values(points), func(a, b Point) int { return cmp.Compare(a.Level, b.Level) })
	var v survey
	for _, p := range sorted {
		switch direction(p) {
		case here:
			v.passing = append(v.passing, p)
		case lower:
			v.lower = append(v.lower, p)
		case higher:
			v.higher = append(v.higher, p)
		}
	}
	return v
}

// move chooses the next step, and false when there is none.
func (s Seek) move(v survey) (move, bool) {
	switch {
	case len(v.passing) > 0:
		return s.improve(v)
	case len(v.lower) > 0 && len(v.higher) > 0:
		return s.between(v.higher[len(v.higher)-1], v.lower[0])
	case len(v.lower) > 0:
		return s.down(v)
	}
	return s.up(v.higher[len(v.higher)-1])
}

// improve looks for a better load than the best that passes.
func (s Seek) improve(v survey) (move, bool) {
	best := 0
	for i, p := range v.passing {
		if p.Score > v.passing[best].Score {
			best = i
		}
	}
	p, top := v.passing[best], len(v.passing)-1
	if s.Goal.Objective.Rises() && best == top {
		above := slices.IndexFunc(v.lower, func(q Point) bool { return q.Level > p.Level })
		if above >= 0 {
			if m, ok := s.between(p, v.lower[above]); ok {
				return m, true
			}
		} else if top == 0 || s.gain(v.passing[top-1].Score, p.Score) >= worthwhile {
			if m, ok := s.up(p); ok {
				return m, true
			}
		}
	}
	if !s.Goal.Objective.falls() || best != 0 {
		return move{}, false
	}
	if len(v.higher) > 0 {
		return s.between(v.higher[len(v.higher)-1], p)
	}
	if top > 0 && s.gain(v.passing[1].Score, p.Score) < worthwhile {
		return move{}, false
	}
	level := s.Axis.AtMost(p.Level / 2)
	return move{Step{level, "lower load"}, math.Inf(1)}, level < p.Level
}

// up doubles the load.
func (s Seek) up(p Point) (move, bool) {
	level := s.Axis.AtLeast(2 * p.Level)
	ceiling := p.Score
	if s.Goal.Objective.Rises() {
		growth := s.Axis.last() / p.Level
		if !s.Axis.Rate && p.Level >= s.Knee {
			growth = min(growth, headroom)
		}
		ceiling = s.raised(p.Score, growth)
	}
	return move{Step{level, "higher load"}, ceiling}, level > p.Level
}

// down lowers the load to where the constraint is expected to hold. In saturation latency is in proportion to concurrency
// (Little's law), so an excess of a quarter is cured by a load of four fifths. Where that does not help, steps get longer.
func (s Seek) down(v survey) (move, bool) {
	p := v.lower[0]
	target := p.Level / math.Pow(resolution, math.Pow(2, float64(len(v.lower)-1)))
	for _, m := range p.Misses {
		if !s.Axis.Rate && strings.HasPrefix(string(m.Constraint.Metric), "latency_") {
			target = min(target, p.Level*cautious/(1+m.Violation))
		}
	}
	level := s.Axis.AtMost(target)
	return move{Step{level, "lower load: " + p.Misses[0].String()}, s.ceilingBelow(p)}, level < p.Level
}

// between bisects, on log scale, a gap whose lower or upper end or neither passes.
func (s Seek) between(a, b Point) (move, bool) {
	ceiling := s.ceilingBelow(b)
	switch {
	case s.Goal.Objective.Rises() && a.Passes():
		ceiling = min(ceiling, s.raised(a.Score, b.Level/a.Level))
	case !s.Goal.Objective.Rises():
		ceiling = a.Score
	}
	for _, p := range []Point{a, b} {
		if p.Passes() && s.gain(p.Score, ceiling) < refinement {
			return move{}, false
		}
	}
	level, ok := s.Axis.inside(a.Level, b.Level)
	gap := resolution
	if s.Axis.Rate {
		gap = fineRates
	}
	return move{Step{level, "between a lower and a higher load"}, ceiling}, ok && b.Level > gap*a.Level
}

// ceilingBelow is the best score of any load below a point: its own when the objective only rises with the load.
func (s Seek) ceilingBelow(p Point) float64 {
	if s.Goal.Objective.falls() {
		return math.Inf(1)
	}
	return p.Score
}

// raised is the score after the throughput grew by a factor and nothing got worse. Of an objective with other metrics no
// more is known.
func (s Seek) raised(score, factor float64) float64 {
	if s.Goal.Objective.falls() {
		return math.Inf(1)
	}
	return score + s.Goal.Objective.Weight()*math.Log(factor)
}

func (s Seek) gain(from, to float64) float64 { return s.Goal.Objective.Gain(from, to) }

// inside returns the level of the axis that is nearest to the geometric mean of two levels and strictly between them.
func (a LoadAxis) inside(low, high float64) (float64, bool) {
	mean := math.Sqrt(low * high)
	if a.Any {
		level := max(math.Floor(mean), math.Floor(low)+1) // 3 is between 2 and 4, though the mean is 2.8
		return level, level > low && level < high
	}
	best, found := 0.0, false
	for _, level := range a.Levels {
		if level > low && level < high && (!found || math.Abs(math.Log(level/mean)) < math.Abs(math.Log(best/mean))) {
			best, found = level, true
		}
	}
	return best, found
}
