package tour

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"tuner/measure"
	"tuner/search"
	"tuner/search/standings"
)

// The parameters of a seek. On a shared machine, the throughput of windows of one configuration
// that are minutes apart has a standard deviation of about 10 %. It was measured on 756 points of a
// real Triton, in two passes of 1.2 s windows.
const (
	near       = 0.10 // a configuration closer than this to the leader may be better
	worthwhile = 0.05 // gain for which the next level is tried
	refinement = 0.02 // possible gain for which levels between two others are tried
	resolution = 1.25 // smallest ratio of neighbouring levels between which others are tried
	// fineRates: the same for request rates: an open loop's throughput equals the rate, and is not
	// flat near saturation
	fineRates   = 1.05
	headroom    = 1.25 // factor by which throughput may still grow beyond the knee
	cautious    = 0.95 // share of the predicted limit that is tried
	retreat     = 4.0  // factor by which the load is lowered after a hang
	seekMaximum = 8    // most points of one seek
)

// Seek finds the best load of one configuration within the constraints, in few trials. It relies on
// properties of a closed loop: throughput and latency do not fall with concurrency, and throughput
// grows at most in proportion to it. So a failing load bounds the throughput of every lower load
// from above. A configuration that cannot come near the leader is given up early.
type Seek struct {
	Axis search.LoadAxis
	Goal search.Goal
	Knee float64 // start of the search: the concurrency that saturates the configuration
}

// Step is the next load to try, with the reason in a few words.
type Step struct {
	Level float64
	Why   string
}

// move is a step with the highest possible score of all loads in its direction.
type move struct {
	Step
	ceiling float64
}

// Next returns the next load to try. points are the points so far in the order of their trials, and
// lead is the score to beat (-Inf without one). It returns false if the best load is known well
// enough, or if no load can reach the lead. A load at which no request came tells nothing, and is tried again.
func (s Seek) Next(points []standings.Point, lead float64) (Step, bool) {
	if len(points) >= seekMaximum {
		return Step{}, false
	}
	points = slices.DeleteFunc(slices.Clone(points), func(p standings.Point) bool { return p.IsEmpty })
	if len(points) == 0 {
		return s.start(), true
	}
	if slices.ContainsFunc(points, func(p standings.Point) bool { return p.Direction() == standings.Never }) {
		return s.afterFailure(points)
	}
	m, ok := s.move(newSurvey(points))
	tried := slices.ContainsFunc(points, func(p standings.Point) bool { return p.Level == m.Level })
	if !ok || tried || s.gain(lead, m.ceiling) < -near {
		return Step{}, false
	}
	return m.Step, true
}

// start returns the first load: the knee, or the lowest load if more load only makes the objective
// worse.
func (s Seek) start() Step {
	switch {
	case !s.Goal.Objective.Rises():
		return Step{s.Axis.First(), "lowest load"}
	case !s.Axis.Mix.IsZero():
		return Step{s.Axis.AtLeast(s.Knee), "the profile's traffic"}
	case s.Axis.Rate:
		return Step{s.Axis.Levels[(len(s.Axis.Levels)-1)/2], "middle of the rates"}
	}
	return Step{s.Axis.AtLeast(s.Knee), "load that saturates it"}
}

// afterFailure gives a configuration that failed at its only load one more chance, if the load may
// have caused the failure. The next load is much lower.
func (s Seek) afterFailure(points []standings.Point) (Step, bool) {
	p := points[0]
	level := s.Axis.AtMost(p.Level / retreat)
	if len(points) > 1 || level >= p.Level || !loadMayBeTheReason(p) {
		return Step{}, false
	}
	return Step{level, "much lower load after a failure"}, true
}

func loadMayBeTheReason(p standings.Point) bool {
	if p.Failure != nil {
		return p.Failure.Stage == measure.StageHang || p.Failure.Stage == measure.StageErrors
	}
	return slices.ContainsFunc(p.Misses, func(m search.Miss) bool { return search.IsMemory(m.Constraint.Metric) && !m.Missing }) || p.IsLate
}

// survey groups a configuration's points by direction, each group ascending by level.
type survey struct{ passing, lower, higher []standings.Point }

func newSurvey(points []standings.Point) survey {
	sorted := slices.SortedStableFunc(slices.Values(points), func(a, b standings.Point) int { return cmp.Compare(a.Level, b.Level) })
	var v survey
	for _, p := range sorted {
		switch p.Direction() {
		case standings.Here:
			v.passing = append(v.passing, p)
		case standings.Lower:
			v.lower = append(v.lower, p)
		case standings.Higher:
			v.higher = append(v.higher, p)
		}
	}
	return v
}

// move chooses the next step; false without one.
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

// improve looks for a better load than the best passing one.
func (s Seek) improve(v survey) (move, bool) {
	best := 0
	for i, p := range v.passing {
		if p.Score > v.passing[best].Score {
			best = i
		}
	}
	p, top := v.passing[best], len(v.passing)-1
	if s.Goal.Objective.Rises() && best == top {
		above := slices.IndexFunc(v.lower, func(q standings.Point) bool { return q.Level > p.Level })
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
	if !s.Goal.Objective.Falls() || best != 0 {
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
func (s Seek) up(p standings.Point) (move, bool) {
	level := s.Axis.AtLeast(2 * p.Level)
	ceiling := p.Score
	if s.Goal.Objective.Rises() {
		growth := s.Axis.Last() / p.Level
		if !s.Axis.Rate && p.Level >= s.Knee {
			growth = min(growth, headroom)
		}
		ceiling = s.raised(p.Score, growth)
	}
	return move{Step{level, "higher load"}, ceiling}, level > p.Level
}

// down lowers the load to the level at which the constraint is expected to hold. In saturation
// latency is proportional to concurrency (Little's law), so four fifths of the load correct an
// excess of a quarter. If that does not suffice, steps get longer.
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

// between bisects, on log scale, a gap in which only the lower, only the upper, or no end passes.
func (s Seek) between(a, b standings.Point) (move, bool) {
	ceiling := s.ceilingBelow(b)
	switch {
	case s.Goal.Objective.Rises() && a.Passes():
		ceiling = min(ceiling, s.raised(a.Score, b.Level/a.Level))
	case !s.Goal.Objective.Rises():
		ceiling = a.Score
	}
	for _, p := range []standings.Point{a, b} {
		if p.Passes() && s.gain(p.Score, ceiling) < refinement {
			return move{}, false
		}
	}
	level, ok := inside(s.Axis, a.Level, b.Level)
	gap := resolution
	if s.Axis.Rate {
		gap = fineRates
	}
	return move{Step{level, "between a lower and a higher load"}, ceiling}, ok && b.Level > gap*a.Level
}

// ceilingBelow returns the best score of any load below a point: its own if the objective only
// rises with the load.
func (s Seek) ceilingBelow(p standings.Point) float64 {
	if s.Goal.Objective.Falls() {
		return math.Inf(1)
	}
	return p.Score
}

// raised returns the score after the throughput grew by a factor and nothing got worse. It is
// unbounded if less load can improve the objective.
func (s Seek) raised(score, factor float64) float64 {
	if s.Goal.Objective.Falls() {
		return math.Inf(1)
	}
	return score + s.Goal.Objective.Weight()*math.Log(factor)
}

func (s Seek) gain(from, to float64) float64 { return s.Goal.Objective.Gain(from, to) }

// inside returns the level of an axis that is nearest to the geometric mean of two levels and
// strictly between them.
func inside(a search.LoadAxis, low, high float64) (float64, bool) {
	mean := math.Sqrt(low * high)
	if a.Any {
		level := max(math.Floor(mean), math.Floor(low)+1) // 3 is between 2 and 4, although the mean is 2.8
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
