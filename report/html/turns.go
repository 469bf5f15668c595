package html

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/search/verdict"
)

// turn is a limit at which a choice becomes likely to keep all limits, or starts to keep them with
// the required confidence.
type turn struct {
	limit  float64
	choice int
	isSafe bool
}

// turns lists the limits of an axis at which the decision may change, ascending, each with three
// digits. A change affects the recommended choice, the one at the edge, or the default's load. v is
// a decision under some finite limit of the axis.
func turns(v verdict.Verdict, x axis) []float64 {
	var all []turn
	for i, c := range v.Choices {
		if at, ok := c.Threshold(x.metric, x.isLeast, verdict.Likely); ok {
			all = append(all, turn{at, i, false})
		}
		if at, ok := c.Threshold(x.metric, x.isLeast, v.Confidence); ok && c.MayLead() && !c.IsUnknown() {
			all = append(all, turn{at, i, true})
		}
	}
	slices.SortStableFunc(all, func(a, b turn) int {
		if x.isLeast {
			a, b = b, a
		}
		return cmp.Compare(a.limit, b.limit)
	})
	var limits []float64
	s := standings{choices: v.Choices, safe: make([]bool, len(v.Choices)), likely: make([]bool, len(v.Choices))}
	last := s.leading()
	for i, t := range all {
		if t.isSafe {
			s.safe[t.choice] = true
		} else {
			s.likely[t.choice] = true
		}
		if i+1 < len(all) && all[i+1].limit == t.limit {
			continue
		}
		if now := s.leading(); now != last {
			limits, last = append(limits, rounded(t.limit, x.isLeast)), now
		}
	}
	slices.Sort(limits)
	return slices.Compact(limits)
}

// standings hold each choice's state under a limit.
type standings struct {
	choices      []verdict.Choice
	safe, likely []bool
}

// leader is the best score of some choices, with the number of choices that have it. The simplest
// of equal choices wins, so a further equal choice may change the answer.
type leader struct {
	score float64
	count int
}

// leaders are the values on which a decision depends.
type leaders struct{ recommended, edge, base, safeBase, likelyBase leader }

func (s standings) leading() leaders {
	isDefault := func(i int) bool { return s.choices[i].Candidate.IsDefault() }
	isKept := func(i int) bool { return s.safe[i] && !s.choices[i].IsDisplaced }
	return leaders{
		recommended: s.best(isKept),
		edge:        s.best(func(i int) bool { return s.likely[i] && !s.safe[i] && s.choices[i].MayLead() }),
		base:        s.best(func(i int) bool { return isDefault(i) && isKept(i) }),
		safeBase:    s.best(func(i int) bool { return isDefault(i) && s.safe[i] }),
		likelyBase:  s.best(func(i int) bool { return isDefault(i) && s.likely[i] }),
	}
}

func (s standings) best(is func(int) bool) leader {
	best := leader{math.Inf(-1), 0}
	for i, c := range s.choices {
		switch {
		case !is(i) || c.Score.Mean < best.score:
		case c.Score.Mean > best.score:
			best = leader{c.Score.Mean, 1}
		default:
			best.count++
		}
	}
	return best
}

// isSafe reports whether a choice may lead and keeps all limits with the required confidence.
func isSafe(c verdict.Choice, confidence float64) bool { return c.MayLead() && c.Keeps(confidence) }

// lightest returns the choice with the least memory among those that keep all limits with the
// required confidence: of those within a tie of the least, the one with the best score. It returns nil if no
// memory is known.
func lightest(v verdict.Verdict) *verdict.Choice {
	memory := func(c verdict.Choice) float64 {
		if e, isKnown := c.Values[measure.Memory]; isKnown && isSafe(c, v.Confidence) {
			return e.Value
		}
		return math.Inf(1)
	}
	least := math.Inf(1)
	for _, c := range v.Choices {
		least = min(least, memory(c))
	}
	var best *verdict.Choice
	for i := range v.Choices {
		c := &v.Choices[i]
		isLight := memory(*c) <= least*(1+verdict.Tie) && !math.IsInf(least, 1)
		if isLight && (best == nil || c.Score.Mean > best.Score.Mean) {
			best = c
		}
	}
	return best
}
