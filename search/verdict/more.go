package verdict

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
)

// mostSaid is the largest factor of a bound. No configuration of a server is a hundred times another:
// a larger bound only says that nothing is known.
const mostSaid = 100.0

func normalQuantile(p float64) float64 { return distuv.UnitNormal.Quantile(p) }

// more returns an upper bound, at the required confidence, of the relative gain of any other choice
// over the answer, and +Inf if it would be beyond mostSaid. It is the gain x with
//
//	Π over engine processes (1 − max over their cells P(keeps the limits)·P(gain > x)) = Confidence
//
// The errors of one process's cells are correlated, so the most promising cell stands for all.
// Processes are treated as independent. This makes x too large rather than too small.
func (d *decider) more(answer int, others [][]other) float64 {
	most := d.ceiling(answer)
	if d.IsOpen {
		return most
	}
	within := func(x float64) bool { return chanceOfMore(others, x*d.Goal.Objective.Weight()) <= 1-d.Confidence }
	switch {
	case within(0):
		return 0
	case !within(math.Log(mostSaid)):
		return most
	}
	lo, hi := 0.0, math.Log(mostSaid)
	for range 50 {
		if mid := (lo + hi) / 2; within(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return math.Expm1(hi)
}

// ceiling returns the largest gain that any choice can have over the answer: that of the highest score
// of the load axis. It is at least 0, and infinite without a highest score.
func (d *decider) ceiling(answer int) float64 {
	axis, l := d.Space.Load, d.choices[answer].Load
	if axis.Rate && len(axis.Levels) > 0 && d.At == nil {
		l = axis.At(axis.Last())
	}
	return max(d.Goal.Objective.Gain(d.choices[answer].Score.Mean, HighestScore(d.Goal, l)), 0)
}

// other compares a configuration at a load with the answer: the difference of their scores, and the
// probability that it keeps the limits.
type other struct {
	over  posterior.Normal
	above posterior.Normal // its score less the expected one of the answer
	holds float64
	most  float64 // largest possible difference
}

// others lists, by engine process, the answer and all choices that may be better.
func (d *decider) others(answer int) [][]other {
	byPool := map[string]int{} // index in the list
	var list [][]other
	enter := func(c search.Candidate, o other) {
		key := c.PoolKey()
		at, known := byPool[key]
		if !known {
			at = len(list)
			byPool[key], list = at, append(list, nil)
		}
		list[at] = append(list[at], o)
	}
	base := d.choices[answer].Score
	for i, c := range d.choices {
		if d.mayLead(i) {
			enter(c.Candidate, other{
				d.scores.difference(i, answer), posterior.Normal{Mean: c.Score.Mean - base.Mean, Deviation: c.Score.Deviation},
				c.Holds, HighestScore(d.Goal, c.Load) - base.Mean,
			})
		}
	}
	for _, r := range d.Rivals {
		above := posterior.Normal{Mean: r.Score.Mean - base.Mean, Deviation: r.Score.Deviation}
		over := posterior.Normal{Mean: above.Mean, Deviation: math.Hypot(above.Deviation, base.Deviation)}
		enter(r.Candidate, other{over, above, r.Holds, HighestScore(d.Goal, r.Load) - base.Mean})
	}
	return list
}

// HighestScore returns an upper bound of the scores at a load. In an open loop, throughput and
// goodput cannot exceed the offered rate. A scale is the offered one. The bound is infinite for other
// objectives and for closed loops.
func HighestScore(goal search.Goal, l measure.Load) float64 {
	terms := goal.Objective.Terms
	if len(terms) == 1 && terms[0].Metric == measure.Scale && l.Scale > 0 {
		return terms[0].Signed() * math.Log(l.Scale)
	}
	rate := l.RequestRate * float64(max(l.BatchSize, 1))
	if len(terms) != 1 || rate <= 0 {
		return math.Inf(1)
	}
	switch metric := terms[0].Metric; {
	case metric == measure.Throughput || metric.IsGoodput():
		return terms[0].Signed() * math.Log(rate)
	case metric == measure.Cost:
		return terms[0].Signed() * math.Log(goal.Cost(rate))
	}
	return math.Inf(1)
}

// chanceOfMore returns the probability that another choice keeps the limits and has a score above
// the answer's by more than x.
func chanceOfMore(others [][]other, x float64) float64 {
	nothing := 1.0
	for _, pool := range others {
		p := 0.0
		for _, o := range pool {
			if x < o.most {
				p = max(p, o.holds*o.over.Above(x))
			}
		}
		nothing *= 1 - p
	}
	return 1 - nothing
}

// chance returns the highest probability that any configuration keeps the limits, measured or not.
// It is 1 if one without any prediction may keep them.
func (d *decider) chance() float64 {
	if d.IsOpen {
		return 1
	}
	most := 0.0
	for i, c := range d.choices {
		if d.mayLead(i) {
			most = max(most, c.Holds)
		}
	}
	for _, r := range d.Rivals {
		most = max(most, r.Holds)
	}
	return most
}

// curves returns the answer as a function of each limit. Latency and memory are included even if
// the goal does not limit them.
func (d *decider) curves() []LimitCurve {
	var list []LimitCurve
	for k, c := range d.bounds {
		if d.limited[k].isKnown && (c.Max == nil) != (c.Min == nil) {
			list = append(list, d.curve(c.Metric, c.Max == nil, k))
		}
	}
	return list
}

// curve visits the choices by the limit at which each may be recommended. From there on the best
// choice so far is recommended. The displaced choices are the same at every limit, so the objective
// only rises.
func (d *decider) curve(metric measure.Metric, isLeast bool, k int) LimitCurve {
	curve := LimitCurve{Metric: metric, IsLeast: isLeast}
	var steps []Step
	for i := range d.choices {
		if limit, ok := d.threshold(k, i, isLeast); ok && d.kept[i] {
			steps = append(steps, Step{limit, i})
		}
	}
	slices.SortStableFunc(steps, func(a, b Step) int {
		if isLeast {
			a, b = b, a
		}
		return cmp.Compare(a.Limit, b.Limit)
	})
	best := math.Inf(-1)
	for _, s := range steps {
		if score := d.scores.means[s.Choice]; score > best {
			best = score
			curve.Steps = append(curve.Steps, s)
		}
	}
	return curve
}

// threshold returns Threshold of a choice that may be recommended.
func (d *decider) threshold(k, i int, isLeast bool) (float64, bool) {
	c := d.choices[i]
	if !d.mayLead(i) || c.IsUnknown() {
		return 0, false
	}
	return c.Threshold(d.bounds[k].Metric, isLeast, d.Confidence)
}

// Threshold returns the limit on a metric, in its base unit, from which on a choice keeps all
// limits with probability p. The other limits stay the same: Π of the others · P(metric ≤ limit) =
// p, with a normal logarithm of the metric. isLeast means that the limit is a minimum. The result
// is false if no limit suffices, or if the choice does not have the metric.
func (c Choice) Threshold(metric measure.Metric, isLeast bool, p float64) (float64, bool) {
	e := c.Values[metric]
	others := 1.0
	for _, l := range c.Limits {
		if l.Constraint.Metric != metric {
			others *= l.Probability
		}
	}
	if !(e.Value > 0) || others < p || c.Errors > search.MostErrors {
		return 0, false
	}
	n := posterior.NormalOf(e)
	z := normalQuantile(min(p/others, 1-1e-12))
	if isLeast {
		z = -z
	}
	return math.Exp(n.Mean + z*n.Deviation), true
}
