package verdict

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/standings"
)

// Decide makes the decision from beliefs.
func Decide(b Beliefs, o Options) Verdict {
	o.Confidence = cmp.Or(o.Confidence, Confidence)
	d := newDecider(b, o)
	v := Verdict{Confidence: o.Confidence, Choices: d.choices}
	if len(d.choices) == 0 {
		v.State = Unmeasured
		return v
	}
	answer := d.answer()
	base := d.base()
	d.compare(answer, base)
	v.Choices = d.choices
	v.Configs = d.configs(answer, base)
	if base >= 0 {
		v.Default = &d.choices[base]
	}
	v.Unseen = d.unseen(base)
	switch {
	case d.isRecommendable(answer):
		v.Recommended = &d.choices[answer]
		v.Edge = d.edge(answer)
	case d.mayLead(answer) && d.choices[answer].Holds >= Likely:
		v.Edge = &d.choices[answer]
	default:
		v.Nearest = &d.choices[answer]
		v.Tradeoffs = d.tradeoffs()
	}
	others := d.others(answer)
	v.More, v.Reach = d.more(answer, others), d.reach(answer, others)
	if v.Nearest != nil {
		v.Chance = d.chance()
	}
	v.IsUnconfirmed = v.Nearest == nil && v.More <= d.enough() && d.MustConfirm && v.Answer().Fresh == 0
	v.State = d.state(v, base)
	v.LimitCurves = d.curves()
	return v
}

func (d *decider) state(v Verdict, base int) State {
	answer := v.Answer()
	switch {
	case v.Nearest != nil && v.Chance > 1-d.Confidence:
		return Unfinished
	case v.Nearest != nil:
		return Nothing
	case v.More > d.enough() || v.IsUnconfirmed:
		return Unfinished
	case v.Recommended == nil:
		return Close
	case answer.Candidate.IsDefault():
		return NoGain
	case base >= 0 && answer.Gain != nil && answer.Better < d.Confidence:
		return NoGain
	}
	return Proven
}

// enough returns the possible gain of others up to which an answer need not wait for them.
func (d *decider) enough() float64 { return max(worthMore, d.Until) }

// decider holds the cells that take part and the beliefs about each pair.
type decider struct {
	Options
	z       float64 // one-sided normal quantile of the confidence
	choices []Choice
	keys    []string // of the choices' candidates
	scores  joint
	bounds  []search.Constraint // the goal's, then those that a reader may try, which exclude nothing yet
	limited []joint             // of each bound's metric
	kept    []bool              // by choice: no simpler one displaces it, see reduce
	lean    []bool              // no lower load of its own configuration displaces it
	order   []int               // the choices, simplest first
	places  []int               // index of each choice in that order
	// complexities: by choice, see reduce
	complexities []complexity
}

// joint is the joint distribution of one quantity over all choices: means and covariances.
type joint struct {
	means      []float64
	covariance func(a, b int) float64
	isKnown    bool
}

func (j joint) at(i int) posterior.Normal {
	return posterior.Normal{Mean: j.means[i], Deviation: math.Sqrt(max(j.covariance(i, i), 0))}
}

// difference returns the distribution of a's value minus b's.
func (j joint) difference(a, b int) posterior.Normal {
	if a == b {
		return posterior.Normal{}
	}
	v := j.covariance(a, a) + j.covariance(b, b) - 2*j.covariance(a, b)
	return posterior.Normal{Mean: j.means[a] - j.means[b], Deviation: math.Sqrt(max(v, 0))}
}

func newDecider(b Beliefs, o Options) *decider {
	d := &decider{Options: o, z: normalQuantile(o.Confidence)}
	measured := b.Measured()
	isElsewhere := slices.ContainsFunc(measured, func(m posterior.Measured) bool { return m.IsElsewhere })
	var cells []posterior.Cell
	for _, m := range measured {
		if m.IsElsewhere != isElsewhere || o.At != nil && !isAt(m.Load, *o.At) {
			continue // figures of two servers cannot be compared
		}
		d.keys = append(d.keys, m.Candidate.Key())
		d.choices = append(d.choices, Choice{
			Measured: m, Values: map[measure.Metric]measure.Estimate{}, IsOutside: m.OnlyLoadCurve && !o.Space.Has(m.Candidate),
		})
		cells = append(cells, m.Cell)
	}
	d.dropUnscored(b, &cells)
	d.fill(b, cells)
	for i := range d.choices {
		d.judge(b, i)
	}
	d.reduce()
	return d
}

// dropUnscored removes the cells for which a metric of the objective is unknown.
func (d *decider) dropUnscored(b Beliefs, cells *[]posterior.Cell) {
	isKnown := make([]bool, len(*cells))
	for i := range isKnown {
		isKnown[i] = true
	}
	for _, t := range d.Goal.Objective.Terms {
		j, ok := b.Joint(*cells, t.Metric)
		for i := range isKnown {
			isKnown[i] = isKnown[i] && ok && !math.IsNaN(j.Means[i])
		}
	}
	var choices []Choice
	var keys []string
	var kept []posterior.Cell
	for i, c := range d.choices {
		if isKnown[i] {
			choices, keys, kept = append(choices, c), append(keys, d.keys[i]), append(kept, (*cells)[i])
		}
	}
	d.choices, d.keys, *cells = choices, keys, kept
}

// isAt reports whether two loads are equal apart from the client batch.
func isAt(a, b measure.Load) bool {
	return a.Concurrency == b.Concurrency && a.RequestRate == b.RequestRate && a.Scale == b.Scale
}

// fill reads means and covariances of the objective and of each constraint. The errors of one
// trial's figures are correlated: a slow machine reduces throughput and raises latency at once. So
// the deviations of an objective's terms are added, which is the upper bound of their sum.
func (d *decider) fill(b Beliefs, cells []posterior.Cell) {
	n := len(cells)
	d.scores = d.scoresOf(b, cells)
	d.bounds = boundsOf(d.Goal)
	for _, c := range d.bounds {
		d.limited = append(d.limited, jointOf(b, cells, c.Metric))
	}
	for _, metric := range d.valueMetrics() {
		if j, ok := b.Joint(cells, metric); ok {
			for i := range n {
				if !math.IsNaN(j.Means[i]) {
					e := d.choices[i].Load.Bounded(metric, j.At(i).Estimate())
					if metric == measure.Scale { // it is chosen
						e.Lo, e.Hi = e.Value, e.Value
					}
					d.choices[i].Values[metric] = e
				}
			}
		}
	}
}

func (d *decider) scoresOf(b Beliefs, cells []posterior.Cell) joint {
	scores := joint{means: make([]float64, len(cells))}
	var terms []posterior.Joint
	var weights []float64
	for _, t := range d.Goal.Objective.Terms {
		j, ok := b.Joint(cells, t.Metric)
		if !ok {
			continue // there are no cells
		}
		terms, weights = append(terms, j), append(weights, t.Signed())
		for i := range cells {
			scores.means[i] += t.Signed() * j.Means[i]
		}
	}
	scores.covariance = func(a, b int) float64 {
		sum := 0.0
		for i, j := range terms {
			sum = addDeviations(sum, weights[i]*weights[i]*j.Covariance(a, b))
		}
		return sum
	}
	return scores
}

// boundsOf lists the goal's constraints. It adds bounds on latency and memory that exclude nothing
// if the goal has none, since readers ask what a limit would change.
func boundsOf(goal search.Goal) []search.Constraint {
	list := slices.Clone(goal.Constraints)
	for _, metric := range []measure.Metric{goal.Latency(), measure.Memory} {
		isBound := func(c search.Constraint) bool { return c.Metric == metric && c.Max != nil }
		if !slices.ContainsFunc(list, isBound) {
			none := math.Inf(1)
			list = append(list, search.Constraint{Metric: metric, Max: &none})
		}
	}
	return list
}

// addDeviations joins two covariances of quantities with fully correlated errors: √v = √v₁ + √v₂,
// with the sign of the larger.
func addDeviations(a, b float64) float64 {
	s := math.Copysign(math.Sqrt(math.Abs(a)), a) + math.Copysign(math.Sqrt(math.Abs(b)), b)
	return math.Copysign(s*s, s)
}

func jointOf(b Beliefs, cells []posterior.Cell, metric measure.Metric) joint {
	j, ok := b.Joint(cells, metric)
	if !ok {
		return joint{means: make([]float64, len(cells)), covariance: func(int, int) float64 { return 0 }}
	}
	return joint{j.Means, j.Covariance, true}
}

// valueMetrics lists the metrics of a choice: those that reports show of every configuration, and
// the goal's others.
func (d *decider) valueMetrics() []measure.Metric {
	list := []measure.Metric{measure.Throughput, d.Goal.Latency(), measure.Memory, measure.Cost}
	if !d.IsRunning {
		list = append(list, measure.LatencyAvg)
	}
	for _, m := range d.Goal.Metrics() {
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}

// judge applies the goal to a choice.
func (d *decider) judge(b Beliefs, i int) {
	c := &d.choices[i]
	c.Score = d.scores.at(i)
	c.Holds = 1
	values := func(metric measure.Metric) (float64, bool) {
		if metric == measure.ErrorRate {
			return c.Errors, true
		}
		e, ok := c.Values[metric]
		return e.Value, ok
	}
	c.Misses = d.Goal.MissesOf(values)
	for k, constraint := range d.Goal.Constraints {
		l := Limit{Constraint: constraint, Probability: d.holds(k, i, constraint)}
		if q, ok := constraint.Metric.Quantile(); ok {
			l.Needs = max(measure.Needed(q)-int(c.Independent[constraint.Metric]), 0)
			l.IsModelled = b.IsPredicted(c.Cell, constraint.Metric)
		}
		c.Limits = append(c.Limits, l)
		c.Holds *= l.Probability
	}
	if c.Errors > search.MostErrors { // a server that refuses requests answers the others quickly
		c.Holds = 0
	}
}

// holds returns the probability that a constraint holds at a choice; 0 if its metric is unknown.
func (d *decider) holds(k, i int, c search.Constraint) float64 {
	if c.Metric == measure.ErrorRate {
		if c.Violation(d.choices[i].Errors) > 0 {
			return 0
		}
		return 1
	}
	if !d.limited[k].isKnown || math.IsNaN(d.limited[k].means[i]) {
		return 0
	}
	n, p := d.limited[k].at(i), 1.0
	if c.Max != nil {
		p = n.Below(*c.Max)
	}
	if c.Min != nil {
		p -= n.Below(*c.Min)
	}
	return max(p, 0)
}

// isRecommendable reports whether a choice may be recommended: it is safe, and no simpler one
// displaces it.
func (d *decider) isRecommendable(i int) bool { return d.kept[i] && d.isSafe(i) }

// isSafe reports whether a choice may lead and keeps all limits with the required confidence.
func (d *decider) isSafe(i int) bool { return d.mayLead(i) && d.choices[i].Keeps(d.Confidence) }

func (d *decider) mayLead(i int) bool { return d.choices[i].MayLead() }

// answer returns the choice to deploy. It is the best choice that may be recommended and is not
// displaced. Without one, it is the best likely choice, without those whose precision is needless.
// Else it is the one that misses the limits least.
// It is never −1, since there is a choice.
func (d *decider) answer() int {
	if best := d.best(d.isRecommendable); best >= 0 {
		return best
	}
	if best := d.likeliest(func(i int) bool { return d.mayLead(i) && d.choices[i].Holds >= Likely && !d.isNeedless(i) }); best >= 0 {
		return best
	}
	all := make([]int, len(d.choices))
	for i := range all {
		all[i] = i
	}
	return slices.MinFunc(all, d.byMiss)
}

// best returns the choice with the best expected objective among some; between equals, the simpler
// one. −1 without any.
func (d *decider) best(is func(int) bool) int {
	best := -1
	for _, i := range d.order {
		if is(i) && (best < 0 || d.scores.means[i] > d.scores.means[best]) {
			best = i
		}
	}
	return best
}

// likeliest returns the choice with the highest expected objective, if a choice that misses the
// limits counts as 0.
func (d *decider) likeliest(is func(int) bool) int {
	best, most := -1, math.Inf(-1)
	for _, i := range d.order {
		if value := Expected(d.Goal.Objective, d.scores.means[i], d.choices[i].Holds); is(i) && value > most {
			best, most = i, value
		}
	}
	return best
}

// Expected returns the logarithm of the expected objective at a score, if it counts as 0 where the limits are missed.
// holds is the probability that they are kept.
func Expected(o search.Objective, score, holds float64) float64 {
	return score/o.Weight() + math.Log(holds)
}

// byMiss orders choices: first those that may lead, then the smallest miss on log scale, then the
// more likely, then the better.
func (d *decider) byMiss(a, b int) int {
	rank := func(i int) int {
		switch {
		case d.choices[i].IsBroken:
			return 2
		case !d.mayLead(i):
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(violation(d.choices[a]), violation(d.choices[b])),
		-cmp.Compare(d.choices[a].Holds, d.choices[b].Holds), -cmp.Compare(d.scores.means[a], d.scores.means[b]),
		cmp.Compare(d.places[a], d.places[b]))
}

func violation(c Choice) float64 {
	sum := 0.0
	for _, m := range c.Misses {
		sum += m.Violation
	}
	return sum
}

// base returns the default at its best load. It is the best safe load, else the likeliest, else the
// one with the smallest miss. −1 if the default was not measured.
func (d *decider) base() int {
	isDefault := func(i int) bool { return d.choices[i].Candidate.IsDefault() }
	return d.bestOf(isDefault)
}

// bestOf returns the best load among some choices.
func (d *decider) bestOf(is func(int) bool) int {
	isLean := func(i int) bool { return d.lean[i] && d.isSafe(i) }
	for _, may := range []func(int) bool{isLean, d.isSafe} {
		if i := d.best(func(i int) bool { return is(i) && may(i) }); i >= 0 {
			return i
		}
	}
	if i := d.likeliest(func(i int) bool { return is(i) && d.choices[i].Holds >= Likely }); i >= 0 {
		return i
	}
	var list []int
	for i := range d.choices {
		if is(i) {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		return -1
	}
	return slices.MinFunc(list, d.byMiss)
}

// compare fills in each choice's comparison with the answer and with the default.
func (d *decider) compare(answer, base int) {
	for i := range d.choices {
		c := &d.choices[i]
		c.IsDisplaced = !d.kept[i]
		difference := d.scores.difference(i, answer)
		c.Against = gain(d.Goal.Objective, difference)
		c.Tied = i != answer && c.Holds >= Likely && math.Abs(difference.Mean) <= math.Log1p(Tie)*d.Goal.Objective.Weight()
		if base < 0 || c.Holds < Likely || d.choices[base].Holds < Likely {
			continue
		}
		over := d.scores.difference(i, base)
		g := gain(d.Goal.Objective, over)
		c.Gain = &measure.Estimate{Value: 1 + g.Value, Lo: 1 + g.Lo, Hi: 1 + g.Hi}
		c.Better = over.Above(0)
	}
}

// configs lists each configuration at its load, the answer first. Then come those that keep the
// limits with the required confidence, and those that are likely to, each by score. The rest follow
// by their miss.
func (d *decider) configs(answer, base int) []Choice {
	var list []int
	for i, key := range d.keys {
		if slices.Index(d.keys, key) != i {
			continue // already listed
		}
		at := d.bestOf(func(i int) bool { return d.keys[i] == key })
		if d.keys[answer] == key {
			at = answer
		}
		list = append(list, at)
	}
	class := func(i int) int {
		switch {
		case i == answer:
			return 0
		case !d.mayLead(i):
			return 4
		case d.isSafe(i):
			return 1
		case d.choices[i].Holds >= Likely:
			return 2
		}
		return 3
	}
	slices.SortFunc(list, func(a, b int) int {
		if order := cmp.Compare(class(a), class(b)); order != 0 || class(a) >= 3 {
			return cmp.Or(order, d.byMiss(a, b))
		}
		return cmp.Or(-cmp.Compare(d.scores.means[a], d.scores.means[b]), cmp.Compare(d.places[a], d.places[b]))
	})
	var configs []Choice
	for _, i := range list {
		configs = append(configs, d.choices[i])
	}
	return configs
}

// edge returns the best choice that is likely to keep the limits and beats the recommended one by
// more than a tie. nil without one.
func (d *decider) edge(answer int) *Choice {
	best := d.best(func(i int) bool {
		return d.mayLead(i) && !d.isSafe(i) && d.choices[i].Holds >= Likely &&
			d.scores.means[i]-d.scores.means[answer] > math.Log1p(Tie)*d.Goal.Objective.Weight()
	})
	if best < 0 {
		return nil
	}
	return &d.choices[best]
}

// tradeoffs returns the changes of limits that would make a choice acceptable if none keeps them.
func (d *decider) tradeoffs() standings.Tradeoffs {
	var t standings.Tradeoffs
	for i, c := range d.choices {
		if d.mayLead(i) {
			t = t.Add(standings.Standing{Candidate: c.Candidate, Load: c.Load,
				Point: standings.Point{Level: c.Load.Level(), Score: c.Score.Mean, Scored: true, Misses: c.Misses}})
		}
	}
	return t
}
