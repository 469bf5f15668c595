package decide

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Verdict is what a gate says.
type Verdict string

// The verdicts.
const (
	Pass         Verdict = "pass"         // proven to be no worse than tolerated
	Fail         Verdict = "fail"         // proven to be worse
	Inconclusive Verdict = "inconclusive" // neither is proven
)

// Criterion is one thing that is judged. Its values are natural logarithms of how many times worse the candidate is than what
// it is compared with: 0 is the same, above 0 is worse.
type Criterion struct {
	Tolerated float64 // such a logarithm, ≥ 0: what is not exceeded passes; 0 for a limit
	Spread    float64 // standard error that no further pair reduces, as that of a baseline from another day; 0 between pairs
	Slope     float64 // by how much a value is expected to grow with what others withhold from the candidate; 0: nothing is taken out
	IsAlone   bool    // no baseline was measured beside the candidate
}

// CanPass reports whether what is exactly as good as what it is compared with can pass: its interval is never narrower than the spread makes it.
func (c Criterion) CanPass() bool {
	full, err := NewPlan(MostLooks*PairsPerLook, 1)
	return err == nil && -distuv.UnitNormal.Quantile(full.holds[MostLooks-1].beyond)*c.Spread <= c.Tolerated
}

// Standing is what is known of a criterion, in logarithms as its values are.
type Standing struct {
	Verdict Verdict
	Value   float64 // trimmed mean of the pairs
	// Lo and Hi bound it with 95 % confidence at all looks together: it fails when Lo is above what is tolerated, and passes when Hi is not. They
	// are infinite while nothing is known of the noise.
	Lo, Hi float64
	Pairs  int     // that it stands on
	Error  float64 // standard error of Value
	Slope  float64 // of the values over what others withheld, as learned; 0 where nothing was taken out
}

// Gate decides on criteria as pairs come in. A criterion that has been decided stays so.
type Gate struct {
	plan      Plan
	criteria  []Criterion
	values    [][]Value // by criterion
	standings []Standing
	looks     int
	ended     bool
}

// New makes a gate that has seen no pair.
func New(plan Plan, criteria []Criterion) *Gate {
	g := &Gate{plan: plan, criteria: criteria, values: make([][]Value, len(criteria)), standings: make([]Standing, len(criteria))}
	for i := range g.standings {
		g.standings[i] = Standing{Verdict: Inconclusive, Lo: math.Inf(-1), Hi: math.Inf(1)}
	}
	return g
}

// Tell adds what a pair says of each criterion, and looks at all pairs when a look is due. It reports whether the gate has ended: failed,
// passed, or had its last look. What is told after that changes nothing.
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
	g.ended = g.Verdict() != Inconclusive || g.Pairs() == g.plan.MostPairs()
	return g.ended
}

// stand finds a criterion's interval, without judging it.
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

// Verdict is that of all criteria: one that fails decides, and all must pass.
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

// Standings are those of the criteria, in their order; of one that has not been decided, by all pairs so far.
func (g *Gate) Standings() []Standing {
	list := slices.Clone(g.standings)
	for i, s := range list {
		if s.Verdict == Inconclusive && s.Pairs != g.Pairs() {
			list[i] = g.stand(g.criteria[i], g.values[i])
		}
	}
	return list
}

// Pairs is how many the gate has been told.
func (g *Gate) Pairs() int { return len(g.values[0]) }

// Looks is how many looks there have been.
func (g *Gate) Looks() int { return g.looks }

// NeededPairs is how many pairs the criteria that are not decided are likely to need in all, if what was seen so far is the truth: those of a look
// that is still to come, maybe beyond the last one of any plan. False when no number of pairs will decide, or nothing is known of the noise. It
// is an estimate for people: with it half of such gates are decided.
func (g *Gate) NeededPairs() (int, bool) {
	full, err := NewPlan(MostLooks*PairsPerLook, len(g.criteria)) // with more pairs there are more looks, which are stricter each
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
		noise := s.Error*s.Error - c.Spread*c.Spread // of the pairs alone
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

// mostNeeded is the number of pairs beyond which an estimate of them says nothing but "never": ten times those of a plan. It takes windows ten times
// as long then, and what launches differ by becomes no less with these.
const mostNeeded = 10 * MostLooks * PairsPerLook
