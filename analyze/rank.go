package analyze

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// ordered puts configurations into the verdict's order and fills in what it says of each: the load, the
// figures, the gain. Those that the verdict does not know (nothing was measured of them, or on another
// server alone) come last, in the order of their first trials.
func ordered(configs []Config, v verdict.Verdict) []Config {
	known := map[string]int{} // places in the verdict
	for i, c := range v.Configs {
		known[c.Candidate.Key()] = i
	}
	list := make([]Config, len(configs))
	for i, c := range configs {
		list[i] = believed(c, v)
	}
	place := func(c Config) int {
		if i, ok := known[c.Candidate.Key()]; ok {
			return i
		}
		return len(v.Configs)
	}
	slices.SortStableFunc(list, func(a, b Config) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), compareBool(a.Best == nil, b.Best == nil), byName(a, b))
	})
	nameTies(list, v)
	for i := range list {
		if list[i].Best != nil {
			list[i].Rank = i + 1
		}
	}
	return list
}

// believed fills in a configuration's points what the verdict knows of them, and which one it is ranked by.
func believed(c Config, v verdict.Verdict) Config {
	c.Points = slices.Clone(c.Points)
	for i := range c.Points {
		if x := choiceAt(v.Choices, c.Candidate, c.Points[i].Load); x != nil {
			c.Points[i] = pointOf(c.Points[i], *x)
		}
	}
	i := slices.IndexFunc(v.Configs, func(x verdict.Choice) bool { return x.Candidate.Key() == c.Candidate.Key() })
	if i < 0 {
		return c
	}
	x := v.Configs[i]
	at := slices.IndexFunc(c.Points, func(p Point) bool { return p.Load == x.Load })
	if at < 0 {
		return c
	}
	c.Best, c.Score, c.Gain = &c.Points[at], c.Points[at].Score, x.Gain
	c.Choice = &x
	return c
}

func choiceAt(choices []verdict.Choice, c search.Candidate, load measure.Load) *verdict.Choice {
	for i := range choices {
		if choices[i].Load == load && choices[i].Candidate.Key() == c.Key() {
			return &choices[i]
		}
	}
	return nil
}

// pointOf is a point with what is known of it instead of its own windows alone.
func pointOf(p Point, x verdict.Choice) Point {
	values := make(map[measure.Metric]measure.Estimate, len(p.Values))
	for metric, e := range p.Values {
		values[metric] = e
	}
	for metric, e := range x.Values {
		values[metric] = e
	}
	p.Values, p.Misses, p.Chances = values, x.Misses, nil
	p.Score = scoreEstimate(x.Score)
	for _, l := range x.Limits {
		p.Chances = append(p.Chances, Chance{l.Constraint, l.Probability, l.IsUnknown()})
	}
	return p
}

func scoreEstimate(n posterior.Normal) measure.Estimate {
	const half = 1.959964
	return measure.Estimate{Value: n.Mean, Lo: n.Mean - half*n.Deviation, Hi: n.Mean + half*n.Deviation}
}

// mostTied is how many of a group's names each member has: of ten thousand that are tied, all would take
// gigabytes, and a hundred half of result.json.
const mostTied = 20

// nameTies writes the names of those that cannot be told from the answer into it, and the answer's into
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

// byTopMean orders configurations by the mean of their highest throughputs: those within the constraints
// first, those without such a mean behind them.
func byTopMean(configs []Config, goal search.Goal) []Config {
	list := slices.Clone(configs)
	slices.SortStableFunc(list, func(a, b Config) int {
		return cmp.Or(compareBool(a.Best == nil, b.Best == nil), compareBool(!a.Satisfies(), !b.Satisfies()),
			-cmp.Compare(a.Score.Value, b.Score.Value), byName(a, b))
	})
	base := Result{Configs: list}.Default()
	for i := range list {
		c := &list[i]
		c.TiedWith, c.Gain, c.Choice = nil, nil, nil
		if c.Best != nil {
			c.Rank = i + 1
		}
		if c.Satisfies() && base.Satisfies() && !math.IsInf(c.Score.Value, 0) && !math.IsInf(base.Score.Value, 0) {
			c.Gain = gainOf(goal, *c, base)
		}
	}
	return list
}

// gainOf is the factor by which one mean of throughputs is above another.
func gainOf(goal search.Goal, c, base Config) *measure.Estimate {
	if c.Candidate.IsDefault() {
		return &measure.Estimate{Value: 1, Lo: 1, Hi: 1}
	}
	e := changeOf(goal, base, c)
	return &measure.Estimate{Value: 1 + e.Value, Lo: 1 + e.Lo, Hi: 1 + e.Hi}
}

// changeOf is the relative change of the objective from one configuration to another, each by its score,
// their errors taken as independent.
func changeOf(goal search.Goal, from, to Config) measure.Estimate {
	half := math.Hypot(to.Score.Hi-to.Score.Value, from.Score.Hi-from.Score.Value)
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

// byName orders by the order of first trial, which the names tell: shorter numbers first.
func byName(a, b Config) int {
	return cmp.Or(
		-compareBool(a.Candidate.IsDefault(), b.Candidate.IsDefault()),
		cmp.Compare(len(a.Name), len(b.Name)),
		cmp.Compare(a.Name, b.Name),
	)
}
