package html

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"tuner/analyze"
	"tuner/internal/parallel"
	"tuner/measure"
	"tuner/search"
	"tuner/search/verdict"
)

// axis is a limit that a reader of the page can move.
type axis struct {
	metric  measure.Metric
	isLeast bool     // a minimum, so a looser limit is a lower one
	own     *float64 // the report's own limit, in the metric's base unit; nil: none
}

// place is a value of the first limit, with the decision under it.
type place struct {
	limit   *float64 // in the metric's base unit; nil: no limit
	isOwn   bool     // the report's own value
	verdict verdict.Verdict
}

// row has the decisions along the first limit, the tightest first, under one value of the second
// limit.
type row struct {
	limit  *float64
	isOwn  bool
	places []place
}

// answers is the decision as a function of at most two limits. The places are the limits at which
// the decision changes. Between two places it is constant, so the page needs no other points.
type answers struct {
	axes []axis // movable limits: places has values of the first, rows of the second
	rows []row
}

const (
	// mostRows limits the values of the second limit on a page. A slider with more is hard to set.
	mostRows = 12
	// mostPlaces is the same for the first limit. It also bounds the page's size.
	mostPlaces = 40
	// mostChoices is the largest number of measured choices for which the second limit moves. A
	// decision compares all pairs, and a page needs about a hundred decisions.
	mostChoices = 400
	// mostAlone is the same if only the first limit moves.
	mostAlone = 2000
	// surely is the probability that the second limit holds at its values. The first limit then has
	// nearly the whole allowed error probability.
	surely = 0.995
)

// answersOf makes a decision at every place where it changes. Under the report's own limits it is
// the result's decision.
func answersOf(r analyze.Result) answers {
	n := len(r.Verdict.Choices)
	if r.Decide == nil || n == 0 || n > mostAlone {
		return answers{rows: []row{{isOwn: true, places: []place{{isOwn: true, verdict: r.Verdict}}}}}
	}
	a := answers{axes: axesOf(r)}
	if len(a.axes) == 0 {
		return answers{rows: []row{{isOwn: true, places: []place{{isOwn: true, verdict: r.Verdict}}}}}
	}
	for _, limit := range a.seconds(r) {
		a.rows = append(a.rows, row{limit: limit, isOwn: len(a.axes) < 2 || equal(limit, a.axes[1].own)})
	}
	parallel.For(len(a.rows), func(i int) { a.rows[i].places = a.places(r, a.rows[i]) })
	return a
}

// axesOf selects the limits that move. The first is the goal's first limit that is not on memory,
// or else a limit on latency. The second is on memory. A limit whose metric no choice has cannot
// move.
func axesOf(r analyze.Result) []axis {
	isKnown := func(m measure.Metric) bool {
		return slices.ContainsFunc(r.Verdict.Choices, func(c verdict.Choice) bool { return c.Values[m].Value > 0 })
	}
	first, second := axis{metric: r.Goal.Latency()}, axis{metric: measure.Memory}
	isFound := false
	for _, c := range r.Goal.Constraints {
		switch {
		case (c.Min == nil) == (c.Max == nil):
		case c.Metric == measure.Memory && c.Max != nil:
			second.own = c.Max
		case !isFound && c.Metric != measure.Memory && isKnown(c.Metric):
			isFound = true
			first = axis{c.Metric, c.Max == nil, cmp.Or(c.Max, c.Min)}
		}
	}
	return slices.DeleteFunc([]axis{first, second}, func(x axis) bool { return !isKnown(x.metric) || isTaken(r.Goal, x) })
}

// isTaken reports whether the goal has another bound on an axis's metric that the axis cannot
// represent.
func isTaken(goal search.Goal, x axis) bool {
	return slices.ContainsFunc(goal.Constraints, func(c search.Constraint) bool {
		return c.Metric == x.metric && (c.Min != nil != x.isLeast || c.Max != nil == x.isLeast)
	})
}

// constraintsAt returns the goal's constraints with other values for the axes' limits, in the axes'
// order.
func (a answers) constraintsAt(goal search.Goal, limits ...*float64) []search.Constraint {
	list := slices.Clone(goal.Constraints)
	for i, limit := range limits {
		if i >= len(a.axes) {
			break
		}
		x := a.axes[i]
		at := slices.IndexFunc(list, func(c search.Constraint) bool { return c.Metric == x.metric })
		c := search.Constraint{Metric: x.metric, Max: limit}
		if x.isLeast {
			c.Min, c.Max = limit, nil
		}
		switch {
		case limit == nil && at >= 0:
			list = slices.Delete(list, at, at+1)
		case limit == nil:
		case at >= 0:
			list[at] = c
		default:
			list = append(list, c)
		}
	}
	return list
}

// seconds lists the values of the second limit, the tightest first and "no limit" last. They are
// the limits at which a configuration surely fits and the answer changes, and the report's own.
// Without a second axis it returns one nil.
func (a answers) seconds(r analyze.Result) []*float64 {
	if len(a.axes) < 2 {
		return []*float64{nil}
	}
	own := a.axes[1].own
	if len(r.Verdict.Choices) > mostChoices {
		return []*float64{own}
	}
	var all []float64
	for _, c := range r.Verdict.Choices {
		c.Limits = nil // without their own limits
		if at, ok := c.Threshold(a.axes[1].metric, a.axes[1].isLeast, surely); ok {
			all = append(all, rounded(at, false))
		}
	}
	slices.Sort(all)
	all = thinned(slices.Compact(all), mostPlaces)
	steps := make([]string, len(all))
	parallel.For(len(all), func(i int) { steps[i] = a.steps(r, &all[i]) })
	var kept []float64
	last := ""
	for i, limit := range all {
		if steps[i] != last {
			kept, last = append(kept, limit), steps[i]
		}
	}
	return withOwn(thinned(kept, mostRows), own, false)
}

// steps describes the curve along the first limit under one value of the second, so that equal
// curves can be detected.
func (a answers) steps(r analyze.Result, second *float64) string {
	v := r.Decide(a.constraintsAt(r.Goal, finite(r, a.axes[0]), second))
	var text []byte
	for _, curve := range v.LimitCurves {
		for _, s := range curve.Steps {
			if curve.Metric == a.axes[0].metric && curve.IsLeast == a.axes[0].isLeast {
				text = strconv.AppendFloat(append(strconv.AppendInt(text, int64(s.Choice), 10), '@'), rounded(s.Limit, curve.IsLeast), 'g', -1, 64)
			}
		}
	}
	return string(text)
}

// finite returns a limit for an axis: the report's own, or else any choice's value. A decision
// checks that enough requests were measured for a percentile only if it has a limit.
func finite(r analyze.Result, x axis) *float64 {
	if x.own != nil {
		return x.own
	}
	for _, c := range r.Verdict.Choices {
		if v := c.Values[x.metric].Value; v > 0 {
			return &v
		}
	}
	return nil
}

// places makes the decisions along the first limit.
func (a answers) places(r analyze.Result, of row) []place {
	x := a.axes[0]
	v := r.Decide(a.constraintsAt(r.Goal, finite(r, x), of.limit))
	var list []place
	for _, limit := range withOwn(thinned(turns(v, x), mostPlaces), x.own, x.isLeast) {
		p := place{limit: limit, isOwn: of.isOwn && equal(limit, x.own)}
		if p.isOwn {
			p.verdict = r.Verdict
		} else {
			p.verdict = r.Decide(a.constraintsAt(r.Goal, limit, of.limit))
		}
		list = append(list, p)
	}
	return list
}

// withOwn adds the report's own limit, and nil (no limit) at the end.
func withOwn(list []float64, own *float64, isLeast bool) []*float64 {
	if own != nil && !slices.Contains(list, *own) {
		list = append(list, *own)
	}
	slices.Sort(list)
	if isLeast {
		slices.Reverse(list)
	}
	limits := make([]*float64, len(list), len(list)+1)
	for i := range list {
		limits[i] = &list[i]
	}
	return append(limits, nil)
}

// rounded returns a limit with three digits, rounded towards the looser side.
func rounded(limit float64, isLeast bool) float64 {
	if v := threeDigits(limit); v == limit {
		return v
	}
	unit := math.Pow(10, math.Floor(math.Log10(limit))-2)
	if isLeast {
		return threeDigits(math.Floor(limit/unit) * unit)
	}
	return threeDigits(math.Ceil(limit/unit) * unit)
}

func threeDigits(v float64) float64 {
	near, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 2, 64), 64)
	if err != nil {
		return v // cannot happen: the text is a number
	}
	return near
}

// thinned merges neighbours until at most a given number are left. It starts with those that differ
// by the smallest factor, and keeps the larger value of two.
func thinned(list []float64, most int) []float64 {
	list = slices.Clone(list)
	for len(list) > most {
		at := 0
		for i := range list[:len(list)-1] {
			if list[i+1]/list[i] < list[at+1]/list[at] {
				at = i
			}
		}
		list = slices.Delete(list, at, at+1)
	}
	return list
}

func equal(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }
