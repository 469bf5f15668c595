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

// axis is a limit that a reader of the page may move.
type axis struct {
	metric  measure.Metric
	isLeast bool     // it is a minimum, so that a looser one is a lower one
	own     *float64 // the report's own, in the metric's base unit; nil: none
}

// place is a value of the first limit, and what is decided there.
type place struct {
	limit   *float64 // in the metric's base unit; nil: no limit
	isOwn   bool     // it is the report's own value
	verdict verdict.Verdict
}

// row is the decision along the first limit, the tightest first, under one value of the second.
type row struct {
	limit  *float64
	isOwn  bool
	places []place
}

// answers are the decision as a function of two limits at most. The places are where it turns, so
// that it is the same from one place up to the next one: the page needs no more than these.
type answers struct {
	axes []axis // that may be moved: the first one's values are those of places, the second one's of rows
	rows []row
}

const (
	// mostRows is how many values of the second limit a page holds: a slider with more is hard to
	// set.
	mostRows = 12
	// mostPlaces is the same for the first limit, and bounds the page's weight.
	mostPlaces = 40
	// mostChoices is how many measured choices are decided upon under other values of the second
	// limit: a decision compares all pairs, and a page makes some hundred decisions.
	mostChoices = 400
	// mostAlone is the same for the first limit alone.
	mostAlone = 2000
	// surely is the probability that the second limit holds at its values. What it leaves to the
	// first is then nearly all of the asked confidence.
	surely = 0.995
)

// answersOf decides at every place at which the decision turns. Within the report's own limits the
// decision is the result's.
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

// axesOf picks the limits: the first of the goal's that is not on memory, else the latency's; and
// the memory's. One whose metric is not known of any choice cannot be moved.
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

// isTaken reports whether the goal bounds an axis's metric in a way that the axis does not stand
// for.
func isTaken(goal search.Goal, x axis) bool {
	return slices.ContainsFunc(goal.Constraints, func(c search.Constraint) bool {
		return c.Metric == x.metric && (c.Min != nil != x.isLeast || c.Max != nil == x.isLeast)
	})
}

// constraintsAt are the goal's constraints with other values of the axes' limits, in the axes'
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

// seconds lists the values of the second limit, the tightest first and none last: those at which a
// configuration surely fits, where that changes the answer; and the report's own. Without a second
// axis there is one, which is nil.
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
		c.Limits = nil // whatever they ask for
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

// steps tells the curve along the first limit under one of the second, so that equal ones can be
// told.
func (a answers) steps(r analyze.Result, second *float64) string {
	v := r.Decide(a.constraintsAt(r.Goal, finite(r, a.axes[0]), second))
	var text []byte
	for _, curve := range v.Curves {
		for _, s := range curve.Steps {
			if curve.Metric == a.axes[0].metric && curve.IsLeast == a.axes[0].isLeast {
				text = strconv.AppendFloat(append(strconv.AppendInt(text, int64(s.Choice), 10), '@'), rounded(s.Limit, curve.IsLeast), 'g', -1, 64)
			}
		}
	}
	return string(text)
}

// finite is a limit of an axis that bounds something: the report's own, else any choice's figure.
// Only with one a decision tells which percentiles are known well enough.
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

// places decides along the first limit.
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

// withOwn adds the report's own limit, and none at the end.
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

// rounded is a limit with three digits, on the looser side.
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
		return v // never: it is a number
	}
	return near
}

// thinned joins neighbours, those first that differ by the smallest factor, until at most so many
// are left. The larger one of two stays.
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
