package verdict

import (
	"math"

	"tuner/search/posterior"
)

// Reach joins the distributions of all choices of a campaign: those that were measured, the answer too, and
// those that were not. It compares a campaign with something outside of it, such as another machine. The
// zero value knows nothing. It is immutable.
type Reach struct {
	pools   [][]other
	weight  float64 // factor between the logarithm of a gain and a difference of scores
	ceiling float64 // logarithm of the largest gain of any choice over the expected objective of the answer
	isKnown bool    // of every choice
}

func (d *decider) reach(answer int, others [][]other) Reach {
	return Reach{others, d.Goal.Objective.Weight(), math.Log1p(d.ceiling(answer)), !d.IsOpen}
}

// Beyond returns an upper bound of the probability that any choice keeps the limits and is better than a
// mark. The mark is given by its gain over the expected objective of the answer, as a logarithm. It is
//
//	1 − Π over engine processes (1 − max over their cells P(keeps the limits)·P(gain > mark))
//
// as for Verdict.More. All cells are compared with the same mark, and share the speed of the machine.
// Both make their errors alike, so the probability is too large rather than too small.
func (r Reach) Beyond(mark posterior.Normal) float64 {
	if r.weight == 0 {
		return 1
	}
	mark.Mean, mark.Deviation = mark.Mean*r.weight, mark.Deviation*r.weight
	within := posterior.Normal{Mean: r.ceiling*r.weight - mark.Mean, Deviation: mark.Deviation}.Above(0)
	if !r.isKnown {
		return within
	}
	nothing := 1.0
	for _, pool := range r.pools {
		p := 0.0
		for _, o := range pool {
			above := posterior.Normal{Mean: o.above.Mean - mark.Mean, Deviation: math.Hypot(o.above.Deviation, mark.Deviation)}
			p = max(p, o.holds*above.Above(0))
		}
		nothing *= 1 - p
	}
	return min(1-nothing, within)
}
