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

func normalQuantile(p float64) float64 { return distuv.UnitNormal.Quantile(p) }

// more is by how much something else may be better than the answer, relative, at most with the asked
// confidence: the gain x with
//
//	Π over engine processes (1 − max over their cells P(keeps the limits)·P(gain > x)) = Confidence
//
// Cells of one process err together, so that the most promising stands for them; processes are taken
// as independent, which makes x too large rather than too small.
func (d *decider) more(answer int) float64 {
	if d.IsOpen {
		return math.Inf(1)
	}
	const most = 20.0 // a factor of e²⁰
	others := d.others(answer)
	within := func(x float64) bool { return chanceOfMore(others, x*d.Goal.Objective.Weight()) <= 1-d.Confidence }
	if within(0) {
		return 0
	}
	lo, hi := 0.0, most
	for range 50 {
		if mid := (lo + hi) / 2; within(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return math.Expm1(hi)
}

// other is a configuration at a load beside the answer: by how much its score is above the answer's, and
// the probability that it keeps the limits.
type other struct {
	over  posterior.Normal
	holds float64
}

// others lists, by engine process, all that may be better than the answer.
func (d *decider) others(answer int) [][]other {
	byPool := map[string]int{} // place in the list
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
	for i, c := range d.choices {
		if i != answer && d.mayLead(i) {
			enter(c.Candidate, other{d.scores.difference(i, answer), c.Holds})
		}
	}
	base := d.choices[answer].Score
	for _, r := range d.Rivals {
		enter(r.Candidate, other{posterior.Normal{
			Mean: r.Score.Mean - base.Mean, Deviation: math.Hypot(r.Score.Deviation, base.Deviation),
		}, r.Holds})
	}
	return list
}

// chanceOfMore is the probability that something keeps the limits and has a score above the answer's by
// more than x.
func chanceOfMore(others [][]other, x float64) float64 {
	nothing := 1.0
	for _, pool := range others {
		p := 0.0
		for _, o := range pool {
			p = max(p, o.holds*o.over.Above(x))
		}
		nothing *= 1 - p
	}
	return 1 - nothing
}

// chance is the highest probability that anything keeps the limits, measured or not; 1 where nothing is known of
// something that may.
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

// curves are the answer as a function of each limit, and of one on latency and memory where the goal has
// none.
func (d *decider) curves() []Curve {
	var list []Curve
	for k, c := range d.bounds {
		if d.limited[k].isKnown && (c.Max == nil) != (c.Min == nil) {
			list = append(list, d.curve(c.Metric, c.Max == nil, k))
		}
	}
	return list
}

// curve goes through the choices by the limit at which each may be recommended. The best so far is what
// is recommended from there on: the choices that are displaced are the same at every limit, so the
// objective only rises.
func (d *decider) curve(metric measure.Metric, isLeast bool, k int) Curve {
	curve := Curve{Metric: metric, IsLeast: isLeast}
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

// threshold is Threshold of what may be recommended.
func (d *decider) threshold(k, i int, isLeast bool) (float64, bool) {
	c := d.choices[i]
	if !d.mayLead(i) || c.IsUnknown() {
		return 0, false
	}
	return c.Threshold(d.bounds[k].Metric, isLeast, d.Confidence)
}

// Threshold is the limit on a metric, in its base unit, from which on a choice keeps all limits with a
// probability p, the others as they are: Π of the others · P(metric ≤ limit) = p, with a normal logarithm
// of the metric. isLeast says that the limit is a minimum. It is false where no limit helps, and where the
// choice does not tell the metric.
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
