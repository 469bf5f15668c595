package analyze

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/measure/agreement"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// view is the decision, with the estimate for every measured point.
type view struct {
	verdict verdict.Verdict
	// elsewhere is the decision among the configurations that the answer's server did not measure.
	// It is the search's decision if the finals ran on another server, and else empty.
	elsewhere verdict.Verdict
	at        *measure.Load // the load of the comparison; nil: each at its best load
	isTwo     bool          // confirmed points come from another server than the others
	choices   map[cellKey]verdict.Choice
}

// cellKey identifies a configuration's point on one of two servers.
type cellKey struct {
	candidate   string
	load        measure.Load
	isElsewhere bool
}

// newView makes a view from a decision. further are decisions by the same beliefs about other
// cells.
func newView(v verdict.Verdict, at *measure.Load, further ...verdict.Verdict) view {
	w := view{verdict: v, at: at, choices: map[cellKey]verdict.Choice{}}
	// The decision's own choices come last and replace others, since they are relative to the
	// answer.
	for _, other := range slices.Concat(further, []verdict.Verdict{v}) {
		for _, x := range other.Choices {
			w.choices[cellKey{x.Candidate.Key(), x.Load, x.IsElsewhere}] = x
		}
	}
	return w
}

// choice returns the estimate of a point, and false if its objective is unknown.
func (w view) choice(c search.Candidate, p Point) (verdict.Choice, bool) {
	x, ok := w.choices[cellKey{c.Key(), p.Load, w.isTwo && p.Confirmed}]
	return x, ok
}

// ordered sorts configurations in the verdict's order. It fills in their load, figures and gain.
// After them come, in this order:
//
//   - configurations that only the other server measured,
//   - configurations whose objective is unknown, ordered by what they miss,
//   - configurations without any measurement.
func (w view) ordered(configs []Config) []Config {
	places := map[string]int{} // by candidate
	for _, list := range [][]verdict.Choice{w.verdict.Configs, w.elsewhere.Configs} {
		for _, x := range list {
			if _, known := places[x.Candidate.Key()]; !known {
				places[x.Candidate.Key()] = len(places)
			}
		}
	}
	list := make([]Config, len(configs))
	place := func(c Config) int {
		if i, ok := places[c.Candidate.Key()]; ok {
			return i
		}
		return len(places)
	}
	for i, c := range configs {
		list[i] = w.seen(c)
	}
	slices.SortStableFunc(list, func(a, b Config) int {
		order := cmp.Or(cmp.Compare(place(a), place(b)), compareBool(a.Best == nil, b.Best == nil))
		if order == 0 && a.Best != nil {
			order = cmp.Compare(a.Best.Violation(), b.Best.Violation())
		}
		return cmp.Or(order, byName(a, b))
	})
	nameTies(list, w.verdict)
	for i := range list {
		if list[i].Best != nil {
			list[i].Rank = i + 1
		}
	}
	return list
}

// seen fills in the estimates of a configuration's points, and the point that ranks it.
func (w view) seen(c Config) Config {
	c.Points = slices.Clone(c.Points)
	for i, p := range c.Points {
		if x, ok := w.choice(c.Candidate, p); ok {
			c.Points[i] = pointOf(p, x)
		}
	}
	is := func(x verdict.Choice) bool { return x.Candidate.Key() == c.Candidate.Key() }
	if i := slices.IndexFunc(w.verdict.Configs, is); i >= 0 {
		return w.ranked(c, w.verdict.Configs[i], true)
	}
	if i := slices.IndexFunc(w.elsewhere.Configs, is); i >= 0 {
		return w.ranked(c, w.elsewhere.Configs[i], false)
	}
	for i, p := range c.Points { // no point has a score
		isHere := w.at == nil || isAt(p.Load, *w.at)
		if isHere && (c.Best == nil || p.Violation() < c.Best.Violation()) {
			c.Best = &c.Points[i]
		}
	}
	c.Score = noScore
	return c
}

// ranked fills in a configuration's place in the verdict. Gains and comparisons with the answer
// hold on the answer's server only.
func (w view) ranked(c Config, x verdict.Choice, isHere bool) Config {
	at := slices.IndexFunc(c.Points, func(p Point) bool {
		return p.Load == x.Load && (w.isTwo && p.Confirmed) == x.IsElsewhere
	})
	if at < 0 {
		return c
	}
	c.Best, c.Score = &c.Points[at], c.Points[at].Score
	c.CurveOnly, c.FailedFinals = x.IsOutside, x.IsBroken
	if isHere {
		c.Gain, c.Choice = x.Gain, &x
	}
	return c
}

// pointOf replaces the figures of a point's own windows by the estimate from all trials.
func pointOf(p Point, x verdict.Choice) Point {
	own := agreement.Figures(p.Values)
	pace := own.Pace("", x.Values, p.Load)
	p.Values, p.BatchTime, p.Batches = own.With(x.Values, p.Load), p.BatchTime*pace, slices.Clone(p.Batches)
	for i := range p.Batches {
		p.Batches[i].Seconds *= pace
	}
	p.Misses, p.Chances = x.Misses, nil
	p.Score = scoreEstimate(x.Score)
	for _, l := range x.Limits {
		p.Chances = append(p.Chances, Chance{l.Constraint, l.Probability, l.IsUnknown()})
	}
	return p
}

// noScore is the score if a metric of the objective is unknown.
var noScore = measure.Estimate{Value: math.Inf(-1), Lo: math.Inf(-1), Hi: math.Inf(-1)}

func scoreEstimate(n posterior.Normal) measure.Estimate {
	lo, hi := n.Interval()
	return measure.Estimate{Value: n.Mean, Lo: lo, Hi: hi}
}

// mostTied limits the number of names in a configuration's list of ties. With ten thousand tied
// configurations, complete lists would take gigabytes. With a hundred, they would be half of
// result.json.
const mostTied = 20

// nameTies writes the names of tied configurations into the answer, and the answer's name into
// theirs.
func nameTies(list []Config, v verdict.Verdict) {
	if len(list) == 0 || !v.Satisfies() {
		return
	}
	for i := range list[1:] {
		c := &list[i+1]
		if c.Choice == nil || !c.Choice.Tied {
			continue
		}
		c.TiedWith = []string{list[0].Name}
		if len(list[0].TiedWith) < mostTied {
			list[0].TiedWith = append(list[0].TiedWith, c.Name)
		}
	}
}

// byTopMean orders configurations by the mean of their highest throughputs. Configurations of the
// finals' server come before the others, those that may win before those that may not.
// Configurations without such a mean come last.
func byTopMean(h journal.Header, configs []Config, goal search.Goal) []Config {
	list := slices.Clone(configs)
	isElsewhere := func(c Config) bool { return h.Finals != nil && !c.Best.Confirmed }
	slices.SortStableFunc(list, func(a, b Config) int {
		if order := compareBool(a.Best == nil, b.Best == nil); order != 0 || a.Best == nil {
			return cmp.Or(order, byName(a, b))
		}
		return cmp.Or(compareBool(isElsewhere(a), isElsewhere(b)), compareBool(!a.mayWin(), !b.mayWin()),
			compareBool(!a.Satisfies(), !b.Satisfies()), -cmp.Compare(a.Score.Value, b.Score.Value), byName(a, b))
	})
	base := Result{Configs: list}.Default()
	for i := range list {
		c := &list[i]
		isKnown := c.Satisfies() && base.Satisfies() && isScored(*c) && isScored(base) && isElsewhere(*c) == isElsewhere(base)
		c.TiedWith, c.Gain = nil, nil
		if isKnown {
			c.Gain = gainOf(goal, *c, base)
		}
		if c.Best != nil {
			c.Rank = i + 1
		}
	}
	return list
}

// gainOf returns the factor between two means of throughputs.
func gainOf(goal search.Goal, c, base Config) *measure.Estimate {
	if c.Candidate.IsDefault() {
		return &measure.Estimate{Value: 1, Lo: 1, Hi: 1}
	}
	e := changeOf(goal, base, c)
	return &measure.Estimate{Value: 1 + e.Value, Lo: 1 + e.Lo, Hi: 1 + e.Hi}
}

// changeOf returns the relative change of the objective from one configuration to another, from
// their scores. It assumes independent errors.
func changeOf(goal search.Goal, from, to Config) measure.Estimate {
	half := math.Hypot(to.Score.Hi-to.Score.Value, from.Score.Hi-from.Score.Value)
	if goal.Objective.IsScale() {
		half = 0
	}
	d := to.Score.Value - from.Score.Value
	gain := func(d float64) float64 { return goal.Objective.Gain(0, d) }
	return measure.Estimate{Value: gain(d), Lo: gain(d - half), Hi: gain(d + half)}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// byName orders by first trial, which the number in the name gives: shorter numbers first.
func byName(a, b Config) int {
	return cmp.Or(
		-compareBool(a.Candidate.IsDefault(), b.Candidate.IsDefault()),
		cmp.Compare(len(a.Name), len(b.Name)),
		cmp.Compare(a.Name, b.Name),
	)
}
