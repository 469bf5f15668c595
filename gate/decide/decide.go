package decide

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Verdict is the outcome of a gate or a criterion.
type Verdict string

// The verdicts.
const (
	Pass         Verdict = "pass"         // proven to be within the tolerance
	Fail         Verdict = "fail"         // proven to be worse
	Inconclusive Verdict = "inconclusive" // neither is proven
)

// Criterion is one criterion of a gate. Its values are natural logarithms of the factor by which
// the candidate is worse than its reference: 0 is equal, above 0 is worse.
type Criterion struct {
	Tolerated float64 // such a logarithm, ≥ 0; values up to it pass; 0 for a limit
	// Spread: standard error that further pairs do not reduce, as that of a baseline from another
	// day; 0 between pairs
	Spread float64
	// Slope: expected growth of a value per unit of CPU time that others withhold from the
	// candidate; 0: no correction
	Slope   float64
	IsAlone bool // no baseline is measured beside the candidate
}

// CanPass reports whether a candidate that equals its reference can pass. It cannot if the spread
// alone makes the interval wider than the tolerance.
func (c Criterion) CanPass() bool {
	full, err := NewPlan(MostLooks*PairsPerLook, 1)
	return err == nil && -distuv.UnitNormal.Quantile(full.holds[MostLooks-1].beyond)*c.Spread <= c.Tolerated
}

// Standing is the current estimate of a criterion, in logarithms like its values.
type Standing struct {
	Verdict Verdict
	Value   float64 // trimmed mean over the pairs
	// Lo and Hi are the bounds with 95 % confidence over all looks together. The criterion fails if
	// Lo is above the tolerance, and passes if Hi is not. They are infinite while the noise is
	// unknown.
	Lo, Hi float64
	Pairs  int     // number of pairs
	Error  float64 // standard error of Value
	Slope  float64 // slope of the values over the withheld time, as learned; 0 without a correction
}

// Gate decides on criteria as pairs arrive. A decision on a criterion is final.
type Gate struct {
	plan      Plan
	criteria  []Criterion
	values    [][]Value // by criterion
	standings []Standing
	looks     int
	ended     bool
}

// New makes a gate without pairs.
func New(plan Plan, criteria []Criterion) *Gate {
	g := &Gate{plan: plan, criteria: criteria, values: make([][]Value, len(criteria)), standings: make([]Standing, len(criteria))}
	for i := range g.standings {
		g.standings[i] = Standing{Verdict: Inconclusive, Lo: math.Inf(-1), Hi: math.Inf(1)}
	}
	return g
}

// Tell adds a pair's value for each criterion, and judges all pairs if a look is due. It reports
// whether the gate has ended: it failed, passed, or had its last look. Later pairs change nothing.
func (g *Gate) Tell(values []Value) (ended bool) {
	if g.ended {
		return true
	}
	for i, v := range values {
		g.values[i] = append(g.values[i], v)
	}
	if g.Pairs()%g.plan.every != 0 {
		return false
	}
	g.look()
	g.ended = g.Verdict() != Inconclusive || g.Pairs() == g.plan.MostPairs()
	return g.ended
}

// End ends a gate that has no time for a further pair, and makes the look that would come next, at
// LeastPairs pairs or more. It is one of the planned looks, and how long pairs take does not depend
// on their values. So the errors stay as they are. It reports whether there is a verdict.
func (g *Gate) End() bool {
	if !g.ended && g.Pairs() >= LeastPairs && g.Pairs()%g.plan.every != 0 {
		g.look()
	}
	g.ended = true
	return g.Verdict() != Inconclusive
}

// look judges the open criteria by all pairs so far.
func (g *Gate) look() {
	g.looks++
	for i, c := range g.criteria {
		if s := &g.standings[i]; s.Verdict == Inconclusive {
			*s = g.stand(c, g.values[i])
			switch {
			case s.Lo > c.Tolerated:
				s.Verdict = Fail
			case s.Hi <= c.Tolerated:
				s.Verdict = Pass
			}
		}
	}
}

// stand computes a criterion's interval, without judging it.
func (g *Gate) stand(c Criterion, pairs []Value) Standing {
	settled := c.settle(pairs)
	mean := Mean(settled.values)
	s := Standing{Verdict: Inconclusive, Value: mean.Mean, Lo: math.Inf(-1), Hi: math.Inf(1), Pairs: len(pairs), Slope: settled.slope}
	if mean.Freedom == 0 {
		return s
	}
	fail, hold := g.plan.bounds(len(pairs))
	s.Error = math.Sqrt(mean.Error*mean.Error + c.Spread*c.Spread + settled.doubt)
	s.Lo, s.Hi = s.Value-fail.critical*s.Error, s.Value+hold.critical*s.Error
	return s
}

// Verdict returns the verdict of all criteria together. One that fails decides, and all must pass.
func (g *Gate) Verdict() Verdict {
	all := Pass
	for _, s := range g.standings {
		if s.Verdict == Fail {
			return Fail
		}
		if s.Verdict == Inconclusive {
			all = Inconclusive
		}
	}
	return all
}

// Standings returns the criteria's standings, in their order. A criterion without a decision has
// the estimate from all pairs so far.
func (g *Gate) Standings() []Standing {
	list := slices.Clone(g.standings)
	for i, s := range list {
		if s.Verdict == Inconclusive && s.Pairs != g.Pairs() {
			list[i] = g.stand(g.criteria[i], g.values[i])
		}
	}
	return list
}

// Pairs returns the number of pairs so far.
func (g *Gate) Pairs() int { return len(g.values[0]) }

// Looks returns the number of looks so far.
func (g *Gate) Looks() int { return g.looks }

// NeededPairs estimates the total number of pairs that decide the open criteria. It assumes that
// the values so far are the truth. The number is that of a look still to come, maybe beyond the
// last one of any plan. It returns false if no number of pairs decides, or if the noise is unknown.
// The estimate is for people: with that number, half of such gates are decided.
func (g *Gate) NeededPairs() (int, bool) {
	// more pairs mean more looks, and each of them is stricter
	full, err := NewPlan(MostLooks*PairsPerLook, len(g.criteria))
	if err != nil {
		return 0, false
	}
	needed := 0.0
	for i, s := range g.Standings() {
		if s.Verdict != Inconclusive {
			continue
		}
		c := g.criteria[i]
		bounds := full.holds
		if s.Value > c.Tolerated {
			bounds = full.fails
		}
		critical := -distuv.UnitNormal.Quantile(bounds[MostLooks-1].beyond)
		noise := s.Error*s.Error - c.Spread*c.Spread // noise of the pairs only
		distance := s.Value - c.Tolerated
		room := distance*distance/(critical*critical) - c.Spread*c.Spread
		if s.Pairs < 2 || room <= 0 {
			return 0, false
		}
		needed = max(needed, float64(s.Pairs)*max(0, noise)/room)
	}
	if needed > mostNeeded {
		return 0, false
	}
	looks := max(math.Ceil(needed/PairsPerLook), float64(g.Pairs()/PairsPerLook+1))
	return int(looks) * PairsPerLook, true
}

// mostNeeded is the largest number of pairs that is reported; more means "never". It is ten times
// the number of a plan. Windows then take ten times as long, which does not reduce the differences
// between launches.
const mostNeeded = 10 * MostLooks * PairsPerLook
